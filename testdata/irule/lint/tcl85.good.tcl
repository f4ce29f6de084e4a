when HTTP_REQUEST {
    set parts [split [HTTP::host] ":"]
    set host [lindex $parts 0]
    if {[lsearch -exact $hosts $host] >= 0} {
        set n [expr {2 * 512}]
    }
    set text {a {*} in braces}
    array set d [list a 1]
}
