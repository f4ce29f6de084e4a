when HTTP_REQUEST {
    # want: never-expires
    table set "seen_[IP::client_addr]" 1 indefinite indefinite
    # want: never-expires
    table add $sid 1 indef indef
}
