when HTTP_REQUEST {
    table set $sid [IP::client_addr] 300 3600
    set who [table lookup $sid]
    persist uie $sid
}
