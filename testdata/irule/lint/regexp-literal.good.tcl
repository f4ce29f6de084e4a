when HTTP_REQUEST {
    if {[HTTP::path] starts_with "/admin"} {
        reject
        return
    }
    if {[regexp {^/v[0-9]+/} [HTTP::path]]} {
        pool api
    }
    if {[HTTP::uri] matches_regex {log(in|out)$}} {
        pool login
    }
}
