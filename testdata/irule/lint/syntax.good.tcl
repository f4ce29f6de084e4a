when HTTP_REQUEST {
    # braces { } in pairs, also in comments
    if { [HTTP::path] eq "/" } { pool "web" } else \
        { pool "o\"ther" }
}
ltm rule /Common/wrapped {
    when HTTP_REQUEST {
        pool web
    }
}
