when HTTP_REQUEST {
    # want: static-write
    incr static::requests
    # want: static-write
    set static::mode maintenance
}
