when RULE_INIT {
    log local0. "loaded"
}
when HTTP_REQUEST {
    incr requests
    if {$requests % 1000 == 0} {
        log local0. "requests=$requests"
    }
    switch -glob [HTTP::path] {
        "/debug*" { log local0. "debug" }
    }
}
