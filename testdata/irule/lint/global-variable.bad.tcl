when RULE_INIT {
    # want: global-variable
    set ::limit 10
}
when HTTP_REQUEST {
    # want: global-variable
    if {[HTTP::cookie count] > $::limit} {
        reject
        return
    }
    # want: global-variable
    global limit
    # want: global-variable
    pool $::fallback
}
