when HTTP_REQUEST {
    # want: tcl85
    set d [dict create a 1]
    # want: tcl85
    lassign [split [HTTP::host] ":"] host port
    # want: tcl85
    if {$host in $hosts} {
        # want: tcl85
        set n [expr {2 ** 10}]
    }
    # want: tcl85
    HTTP::respond {*}$answer
}
