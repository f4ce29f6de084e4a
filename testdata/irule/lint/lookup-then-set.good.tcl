when HTTP_REQUEST {
    set first [table add "first_[IP::client_addr]" [clock seconds] 300 3600]
    if {[table lookup -notouch $sid] eq ""} {
        table set -excl $sid new 300 3600
        table set "other_$sid" new 300 3600
    }
    if {[table lookup "state_$sid"] ne ""} {
        table set "state_$sid" again 300 3600
    }
}
