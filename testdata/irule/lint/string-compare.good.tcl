when HTTP_REQUEST {
    if {[HTTP::method] eq "POST"} {
        set kind post
    } elseif {[HTTP::method] equals "HEAD"} {
        set kind head
    } elseif {[HTTP::cookie count] == 10 or $n == "10"} {
        set kind other
    }
}
