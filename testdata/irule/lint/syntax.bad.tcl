when HTTP_REQUEST {
    if {[HTTP::path] eq "/"} {
        # want: syntax
        pool "web
    }
}
