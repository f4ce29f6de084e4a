when HTTP_REQUEST {
    # want: keys-as-lookup
    if {[lsearch [table keys -subtable seen -notouch] [IP::client_addr]] >= 0} {
        reject
        return
    }
    # want: keys-as-lookup
    if {[table keys -subtable seen -notouch] contains [IP::client_addr]} {
        reject
        return
    }
    # want: keys-as-lookup
    foreach k [table keys -subtable seen -notouch] {
        if {$k eq [IP::client_addr]} {
            reject
            return
        }
    }
}
