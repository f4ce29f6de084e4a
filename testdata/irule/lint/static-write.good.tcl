when RULE_INIT {
    set static::requests 0
}
when HTTP_REQUEST {
    set mode $static::mode
    set seen [set static::requests]
}
