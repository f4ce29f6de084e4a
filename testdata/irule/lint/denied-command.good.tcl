when HTTP_REQUEST {
    set handle [HSL::open -proto UDP -pool syslog]
    HSL::send $handle [IP::client_addr]
    table set "file_$sid" open 300 3600
}
