when HTTP_REQUEST {
    # want: keys-llength
    if {[llength [table keys -subtable "c_[IP::client_addr]" -notouch]] > 10} {
        reject
        return
    }
    set all [table keys -subtable users -notouch]
    # want: keys-llength
    set n [llength $all]
}
