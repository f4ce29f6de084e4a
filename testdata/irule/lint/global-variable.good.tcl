when RULE_INIT {
    set static::limit 10
}
when HTTP_REQUEST {
    if {[HTTP::cookie count] > $static::limit} {
        reject
        return
    }
    pool $fallback
}
