when HTTP_REQUEST {
    if {[table keys -subtable "c_[IP::client_addr]" -count] > 10} {
        reject
        return
    }
    set n [llength [split [HTTP::path] "/"]]
}
