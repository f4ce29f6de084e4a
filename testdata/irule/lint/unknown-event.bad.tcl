# want: unknown-event
when HTTP_REQ {
    pool web
}
# want: unknown-event
when RULE_INITIALIZE {
    set x 1
}
