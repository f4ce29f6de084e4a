when HTTP_REQUEST {
    # want: string-compare
    if {[HTTP::method] == "POST"} {
        set kind post
    # want: string-compare
    } elseif {"HEAD" != [HTTP::method]} {
        set kind other
    }
}
