when RULE_INIT {
    set static::limit 10
    # want: table-in-init
    table set -subtable config limit 10 300 3600
}
