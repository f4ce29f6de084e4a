when HTTP_REQUEST {
    # want: timers-swapped
    table set $sid 1 3600 300
    # want: timers-swapped
    table add -subtable "c_$sid" k v 7200 60
}
