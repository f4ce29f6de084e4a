when HTTP_REQUEST {
    if {[table lookup -notouch -subtable blocklist [IP::client_addr]] ne ""} {
        reject
        return
    }
    # without an idle timeout there is nothing to restart
    if {[table lookup -subtable "jail" [IP::client_addr]] ne ""} {
        reject
        return
    }
    if {[HTTP::path] eq "/trap"} {
        table add -subtable jail [IP::client_addr] 1 indefinite 600
    }
    # a session in use may go on
    set user [table lookup -subtable sessions [HTTP::cookie value sid]]
    # bandwidth is no ban
    set rate [table lookup "bandwidth_[IP::client_addr]"]
}
