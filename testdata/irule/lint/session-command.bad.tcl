when HTTP_REQUEST {
    # want: session-command
    session add uie $sid [IP::client_addr] 300
    # want: session-command
    set who [session lookup uie $sid]
}
