when HTTP_REQUEST {
    set v [table lookup -notouch $sid]
    set left [table timeout -remaining $sid]
    table set -excl $sid 1 300 3600
    table delete -subtable "c_$sid" -all
    set op lookup
    set w [table $op $other]
}
