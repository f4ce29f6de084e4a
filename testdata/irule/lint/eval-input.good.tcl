when HTTP_REQUEST {
    set q [URI::query [HTTP::uri] cmd]
    set command [list table set "q_$sid" $q 300 3600]
    eval $command
    set out [subst {$static::template}]
    set n [expr {[string length $q] + 1}]
}
