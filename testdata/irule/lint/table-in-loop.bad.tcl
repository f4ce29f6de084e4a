when HTTP_REQUEST {
    foreach name [HTTP::cookie names] {
        # want: table-in-loop
        table set "cookie_$name" 1 300 3600
    }
    for {set i 0} {$i < 10} {incr i} {
        # want: table-in-loop
        set v [table lookup -notouch "slot_$i"]
    }
}
