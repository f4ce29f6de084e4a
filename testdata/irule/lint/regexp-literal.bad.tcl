when HTTP_REQUEST {
    # want: regexp-literal
    if {[regexp {^/admin} [HTTP::path]]} {
        reject
        return
    }
    # want: regexp-literal
    if {[HTTP::uri] matches_regex "login"} {
        pool login
    }
}
