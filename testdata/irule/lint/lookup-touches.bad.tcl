when HTTP_REQUEST {
    # want: lookup-touches
    if {[table lookup -subtable blocklist [IP::client_addr]] ne ""} {
        reject
        return
    }
    # want: lookup-touches
    if {[table lookup "banned_[IP::client_addr]"] ne ""} {
        reject
        return
    }
}
