when RULE_INIT {
    set static::limit 10
}
when CLIENT_ACCEPTED {
    if {[table lookup -notouch -subtable config limit] > $static::limit} {
        reject
    }
}
