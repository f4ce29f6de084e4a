when HTTP_REQUEST {
    set n [expr {$a + $b}]
    if {$n > 10} {
        reject
    }
    while {$n > 0} {
        incr n -1
    }
    set two [expr 1 + 1]
}
