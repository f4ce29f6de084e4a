when CLIENT_ACCEPTED {
    # want: log-per-request
    log local0. "accepted on tmm [TMM::cmp_unit]"
}
when HTTP_REQUEST {
    foreach x [list 1 2] {
        # want: log-per-request
        log local0. "request $x"
    }
}
