when HTTP_REQUEST {
    if {[table lookup "first_[IP::client_addr]"] eq ""} {
        # want: lookup-then-set
        table set "first_[IP::client_addr]" [clock seconds] 300 3600
    }
    set pool_name [table lookup -subtable pools $sid]
    if {$pool_name eq ""} {
        # want: lookup-then-set
        table set -subtable pools $sid new 300 3600
    }
    if {[table lookup -notouch "hits_[IP::client_addr]"] ne ""} {
        set known 1
    } else {
        # want: lookup-then-set
        table set "hits_[IP::client_addr]" 0 300 3600
    }
}
