when HTTP_REQUEST {
    table set $sid 1 300 3600
    table add -subtable "c_$sid" k v indefinite 60
    table replace $sid 1 $timeout $lifetime
    table set $sid 1 0 0
}
