when HTTP_REQUEST {
    # want: one-subtable
    table set -subtable sessions [HTTP::cookie value sid] 1 300 3600
    # want: one-subtable
    table append -subtable "trail" [IP::client_addr] x
}
