when HTTP_REQUEST {
    # without a subtable each key is hashed by itself
    table set "session_[HTTP::cookie value sid]" 1 300 3600
    if {[HTTP::status] == 403} {
        # now and then
        table set -subtable offenders [IP::client_addr] 1 300 3600
    }
    # a subtable per client
    table set -subtable "client_[IP::client_addr]" [HTTP::cookie value sid] 1 300 3600
}
