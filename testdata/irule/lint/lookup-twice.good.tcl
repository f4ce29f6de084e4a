when HTTP_REQUEST {
    set user [table lookup "s_[HTTP::cookie value sid]"]
    if {$user ne ""} {
        set role [table lookup "r_$user"]
    }
}
when HTTP_RESPONSE {
    set role [table lookup "r_$user"]
}
