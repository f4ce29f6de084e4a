when HTTP_REQUEST {
    # want: denied-command
    set f [open /var/tmp/keys w]
    # want: denied-command
    puts $f [IP::client_addr]
    # want: denied-command
    exec /bin/true
}
