when HTTP_REQUEST {
    table set "seen_[IP::client_addr]" 1 86400 indefinite
    if {[HTTP::path] eq "/on"} {
        # one entry is no leak
        table set switch on indefinite indefinite
    }
}
