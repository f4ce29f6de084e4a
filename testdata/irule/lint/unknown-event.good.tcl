when HTTP_REQUEST priority 100 {
    pool web
}
when RULE_INIT {
    set static::x 1
}
when HTTP_RESPONSE timing on {
    HTTP::header remove Server
}
