when HTTP_REQUEST {
    if {[HTTP::path] eq "/old"} {
        table set $sid 1 300 3600
        HTTP::redirect "/new"
        return
    }
    switch -exact -- [HTTP::path] {
        "/ok" { HTTP::respond 200 content "ok" }
        default { pool web }
    }
}
