when HTTP_REQUEST {
    if {[HTTP::method] eq "PUT"} {
        log local0. "uri=[URI::encode [HTTP::uri]]"
        set agent [string map $static::encoding [HTTP::header value User-Agent]]
        log local0. "agent=$agent from [IP::client_addr]"
    }
}
