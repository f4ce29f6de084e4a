when HTTP_REQUEST {
    # want: eval-input
    eval [HTTP::header value X-Command]
    set q [URI::query [HTTP::uri] cmd]
    # want: eval-input
    set out [subst $q]
    # want: eval-input unbraced-expr
    set n [expr $q + 1]
}
