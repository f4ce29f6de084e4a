when RULE_INIT {
    set static::step 1
}
when HTTP_REQUEST {
    ISTATS::incr "ltm.virtual [virtual name] counter requests" $static::step
    table incr -notouch "requests_[IP::client_addr]"
}
