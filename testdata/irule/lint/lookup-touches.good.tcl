when HTTP_REQUEST {
    if {[table lookup -notouch -subtable blocklist [IP::client_addr]] ne ""} {
        reject
        return
    }
    # a session in use may go on
    set user [table lookup -subtable sessions [HTTP::cookie value sid]]
    # bandwidth is no ban
    set rate [table lookup "bandwidth_[IP::client_addr]"]
}
