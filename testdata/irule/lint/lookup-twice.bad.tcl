when HTTP_REQUEST {
    if {[table lookup "s_[HTTP::cookie value sid]"] ne ""} {
        # want: lookup-twice
        set user [table lookup "s_[HTTP::cookie value sid]"]
    }
}
