when HTTP_REQUEST {
    # want: incr-touches
    if {[table incr "rate_[IP::client_addr]"] > 100} {
        reject
    }
}
