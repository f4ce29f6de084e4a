when HTTP_REQUEST {
    # want: unbraced-expr
    set n [expr $a + $b]
    # want: unbraced-expr
    if "$n > 10" {
        reject
    }
    # want: unbraced-expr
    while $n {
        incr n -1
    }
}
