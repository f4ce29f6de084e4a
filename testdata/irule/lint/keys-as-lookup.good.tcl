when HTTP_REQUEST {
    if {[table lookup -notouch -subtable seen [IP::client_addr]] ne ""} {
        reject
        return
    }
    foreach k [split [HTTP::path] "/"] {
        if {$k eq "admin"} {
            reject
            return
        }
    }
    if {[lsearch [list a b] [HTTP::host]] >= 0} {
        reject
        return
    }
    if {[HTTP::path] eq "/list"} {
        set out ""
        foreach k [table keys -subtable seen -notouch] {
            append out "$k "
        }
    }
}
