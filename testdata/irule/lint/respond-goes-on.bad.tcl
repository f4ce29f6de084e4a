when HTTP_REQUEST {
    if {[HTTP::path] eq "/old"} {
        HTTP::redirect "/new"
        # want: respond-goes-on
        pool web
    }
    HTTP::respond 200 content "ok"
    # want: respond-goes-on
    table set $sid 1 300 3600
}
