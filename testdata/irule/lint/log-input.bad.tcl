when HTTP_REQUEST {
    if {[HTTP::method] eq "PUT"} {
        # want: log-input
        log local0. "uri=[HTTP::uri]"
        set agent [HTTP::header value User-Agent]
        # want: log-input
        log local0. "agent=$agent"
    }
}
