when HTTP_REQUEST {
    # want: table-subcommand
    set v [table get $sid]
    # want: table-subcommand
    if {[table exists $sid]} {
        # want: table-subcommand
        table set -nx $sid 1 300 3600
    }
    # want: table-subcommand
    table lookup -remaining $sid
}
