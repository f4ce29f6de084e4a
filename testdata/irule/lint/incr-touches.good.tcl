when HTTP_REQUEST {
    if {[table incr -notouch "rate_[IP::client_addr]"] > 100} {
        reject
    }
}
