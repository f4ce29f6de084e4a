when HTTP_REQUEST {
    # want: hot-key
    table incr -notouch requests_total
    # want: hot-key
    table set -subtable stats last_seen [clock seconds] 300 3600
}
