when HTTP_REQUEST {
    if {[HTTP::method] eq "POST"} {
        # want: collect-unbounded
        HTTP::collect
    } else {
        # want: collect-unbounded
        HTTP::collect [HTTP::header value "Content-Length"]
    }
    set n [HTTP::header "content-length"]
    # want: collect-unbounded
    HTTP::collect $n
}
