when HTTP_REQUEST {
    set names [list]
    foreach name [HTTP::cookie names] {
        lappend names $name
    }
    table set "cookies_[IP::client_addr]" $names 300 3600
}
