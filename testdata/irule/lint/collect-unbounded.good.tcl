when HTTP_REQUEST {
    set n [HTTP::header value "Content-Length"]
    if {$n > 1048576} {
        HTTP::respond 413 content "too large"
        return
    }
    HTTP::collect $n
}
when HTTP_RESPONSE {
    HTTP::collect 4096
}
