when RULE_INIT {
    # want: fixed-name
    set static::store "sessions_[TMM::cmp_unit]"
}
when CLIENT_ACCEPTED {
    set tmm [TMM::cmp_unit]
}
when HTTP_REQUEST {
    table set -subtable $static::store $tmm 1 300 3600
    # want: fixed-name
    table set -subtable "db_tmm_$tmm" [HTTP::cookie value sid] 1 300 3600
    # want: fixed-name
    table lookup -subtable db_[TMM::cmp_unit] key
}
