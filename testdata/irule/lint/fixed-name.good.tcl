when HTTP_REQUEST {
    call LOCALDB::set [HTTP::cookie value sid] 1 300 3600
    # a name found by timing writes is no fixed one
    set name "db_[TMM::cmp_unit]_[expr {int(rand() * 1000000)}]"
    table set -subtable $name [HTTP::cookie value sid] 1 300 3600
    # the number may stand in a key
    table set "last_[TMM::cmp_unit]" 1 300 3600
}
