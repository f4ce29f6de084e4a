# LOCALDB_HARNESS: the endpoints by which the locality of LOCALDB's storage is
# loaded, asked and proven over HTTP. One request is served by the TMM that
# accepted its connection, so a client opens a new one per request.
#
#   GET  /info /whoami            open to everybody; nothing is listed or written
#                                 (but /whoami makes the TMM look for its name)
#   GET  /load?key=K&val=V        one write into this TMM's own subtable
#   POST /bulk_load               one key per line
#   GET  /dump /names             keys; subtables with entries of this TMM
#   GET  /probe?name=N            one timed write into any subtable
#   GET  /reset [?name=N]         empty this TMM's subtable, or any
#   GET  /table?op=...            one table command on any subtable
#   GET  /meta?subtable=S&key=K   times and timers of an entry
#
# All but the first two ask for the bearer secret, for an allowed source
# address, or both, as filled in below.
#
# The virtual server needs an HTTP profile. Nothing is logged per request.
# User input goes into no command line: where a command has optional parts,
# it is put together as a list.
#
# Versions: 11.5 and later. TMM collects no more than about 4 MB of a body
# into a Tcl variable, by F5's advice: keep batches below it, or lower
# static::harness_max_body so that a larger one is answered with 413.
# Whether a 0 byte or bytes of 128 and above in keys survive URI::decode
# depends on the release: try it with your own before relying on it.

when RULE_INIT {
    set static::harness_secret "@SECRET@"
    set static::harness_allow "@ALLOW@"
    set static::harness_max_body @MAX_BODY@
    set static::harness_body_ms @BODY_TIMEOUT_MS@
}

# answer sends one line and closes.
proc answer {status text} {
    HTTP::respond $status content "$text\n" noserver "Content-Type" "text/plain" "Connection" "close"
}

# refuse sends an error and closes.
proc refuse {status text} {
    if {$status == 401} {
        HTTP::respond 401 content "$text\n" noserver "Content-Type" "text/plain" "WWW-Authenticate" "Bearer" "Connection" "close"
    } elseif {$status == 405} {
        HTTP::respond 405 content "$text\n" noserver "Content-Type" "text/plain" "Allow" [expr {[HTTP::path] eq "/bulk_load" ? "POST" : "GET"}] "Connection" "close"
    } else {
        HTTP::respond $status content "$text\n" noserver "Content-Type" "text/plain" "Connection" "close"
    }
}

# authorized is 200 when the request carries the secret, where there is one,
# and comes from an allowed address, where some are listed; else the status
# to refuse it with.
proc authorized {} {
    if {$static::harness_secret ne ""} {
        set given [HTTP::header value "Authorization"]
        if {[string tolower [string range $given 0 6]] ne "bearer " or [string trim [string range $given 7 end]] ne $static::harness_secret} {
            return 401
        }
    }
    if {$static::harness_allow eq ""} {
        return 200
    }
    # A route domain is written behind the address: 10.1.2.3%4
    set source [getfield [IP::client_addr] "%" 1]
    foreach range $static::harness_allow {
        if {[IP::addr $source equals $range]} {
            return 200
        }
    }
    return 403
}

# param returns the decoded value of the first query parameter of that name,
# and nothing where there is none. Decoded once: %2541 is the text %41.
proc param {name} {
    foreach pair [split [HTTP::query] "&"] {
        if {$pair starts_with "$name="} {
            set raw [string range $pair [expr {[string length $name] + 1}] end]
            return [URI::decode [string map [list "+" " "] $raw]]
        }
    }
    return ""
}

# has_param says whether the query names the parameter at all.
proc has_param {name} {
    foreach pair [split [HTTP::query] "&"] {
        if {$pair eq $name or $pair starts_with "$name="} {
            return 1
        }
    }
    return 0
}

# table_answer runs one table command and answers with its time and result.
proc table_answer {} {
    set op [call LOCALDB_HARNESS::param op]
    set subtable [call LOCALDB_HARNESS::param subtable]
    set key [call LOCALDB_HARNESS::param key]
    set value [call LOCALDB_HARNESS::param value]
    set timeout [call LOCALDB_HARNESS::param timeout]
    set lifetime [call LOCALDB_HARNESS::param lifetime]
    set flags [split [call LOCALDB_HARNESS::param flags] ","]
    # which flags the command knows; timers say whether it takes them
    switch -exact -- $op {
        set { set known [list notouch excl mustexist] }
        add - replace - lookup { set known [list notouch] }
        incr - append { set known [list notouch mustexist] }
        delete { set known [list all] }
        keys { set known [list notouch count] }
        timeout - lifetime { set known [list remaining] }
        default {
            call LOCALDB_HARNESS::refuse 400 "op: no such table command"
            return
        }
    }
    if {$subtable eq ""} {
        call LOCALDB_HARNESS::refuse 400 "subtable is missing or empty"
        return
    }
    set options [list]
    set all 0
    foreach flag $flags {
        if {$flag eq "" or [lsearch -exact [list notouch excl mustexist remaining count all] $flag] >= 0} {
            # A flag that the command has no use for changes nothing.
            if {$flag eq "all" and $op ne "delete"} {
                call LOCALDB_HARNESS::refuse 400 "flags: all goes with delete only"
                return
            }
            if {$flag eq "all"} {
                set all 1
            } elseif {$flag ne "" and [lsearch -exact $known $flag] >= 0 and [lsearch -exact $options "-$flag"] < 0} {
                lappend options "-$flag"
            }
        } else {
            call LOCALDB_HARNESS::refuse 400 "flags: no such flag"
            return
        }
    }
    if {$key eq "" and $op ne "keys" and $all == 0} {
        call LOCALDB_HARNESS::refuse 400 "key is missing or empty"
        return
    }
    set timers [list]
    foreach timer [list $timeout $lifetime] {
        if {$timer eq "indef"} {
            set timer indefinite
        } elseif {[regexp {^[0-9]+$} $timer] and [string length $timer] <= 10} {
            # a leading 0 would make it octal; 0 itself leaves a timer as it is
            set timer [string trimleft $timer "0"]
            if {$timer eq ""} {
                set timer 0
            }
        } elseif {$timer ne "" and $timer ne "indefinite"} {
            call LOCALDB_HARNESS::refuse 400 "timers: want seconds or indefinite"
            return
        }
        lappend timers $timer
    }
    set timeout [lindex $timers 0]
    set lifetime [lindex $timers 1]
    set stored [call LOCALDB::escape $key]
    set command [list table $op -subtable $subtable]
    foreach option $options {
        lappend command $option
    }
    set result ""
    switch -exact -- $op {
        set - add - replace {
            lappend command $stored $value
            if {$timeout ne ""} {
                lappend command $timeout
            } elseif {$lifetime ne ""} {
                lappend command 180
            }
            if {$lifetime ne ""} {
                lappend command $lifetime
            }
        }
        incr {
            lappend command $stored
            if {$value ne ""} {
                if {not [regexp {^-?[0-9]+$} $value]} {
                    call LOCALDB_HARNESS::refuse 400 "value: want a whole number"
                    return
                }
                lappend command $value
            }
        }
        append { lappend command $stored $value }
        timeout {
            lappend command $stored
            if {$timeout ne "" and $timeout ne "0"} {
                lappend command $timeout
            }
        }
        lifetime {
            lappend command $stored
            if {$lifetime ne "" and $lifetime ne "0"} {
                lappend command $lifetime
            }
        }
        delete {
            # table delete tells no number
            if {$all} {
                set result [table keys -subtable $subtable -count]
                lappend command -all
            } else {
                set before [table timeout -subtable $subtable $stored]
                set result [expr {$before ne "-1" and $before ne ""}]
                lappend command $stored
            }
        }
        lookup { lappend command $stored }
    }
    # A pure list: eval takes its words as they are.
    set start [clock clicks]
    if {[catch {eval $command} got]} {
        call LOCALDB_HARNESS::refuse 400 "table $op: [call LOCALDB::encode [string range $got 0 200]]"
        return
    }
    set diff [expr {[clock clicks] - $start}]
    if {$op eq "keys" and [lsearch -exact $options -count] < 0} {
        # one field: the list of encoded keys, encoded once more
        set words [list]
        foreach k $got {
            lappend words [call LOCALDB::encode [call LOCALDB::unescape $k]]
        }
        set result [join $words " "]
    } elseif {$op ne "delete"} {
        set result $got
    }
    if {[lsearch -exact [list set add replace incr append delete] $op] >= 0} {
        if {$subtable eq $static::localdb_name} {
            # written past the library: put its counter right
            call LOCALDB::count_actual
        } elseif {$op ne "delete"} {
            call LOCALDB::note $subtable
        }
    }
    if {$diff < $static::localdb_threshold} {
        set tag OWNER
    } else {
        set tag NON_OWNER
    }
    call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] clicks=$diff $tag result=[call LOCALDB::encode $result]"
}

# meta_answer tells an entry's timers, and its times as far as they follow
# from them: a table keeps neither creation nor last use.
proc meta_answer {} {
    set subtable [call LOCALDB_HARNESS::param subtable]
    set key [call LOCALDB::escape [call LOCALDB_HARNESS::param key]]
    if {$subtable eq "" or $key eq ""} {
        call LOCALDB_HARNESS::refuse 400 "subtable and key are needed"
        return
    }
    set timeout [table timeout -subtable $subtable $key]
    set timeout_left [table timeout -subtable $subtable -remaining $key]
    set lifetime [table lifetime -subtable $subtable $key]
    set lifetime_left [table lifetime -subtable $subtable -remaining $key]
    set now [clock seconds]
    foreach field [list $timeout $timeout_left $lifetime $lifetime_left] {
        if {$field eq "-1" or $field eq ""} {
            call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] missing"
            return
        }
    }
    set touched unknown
    set created unknown
    if {[string is digit $timeout] and [string is digit $timeout_left]} {
        set touched [expr {$now - $timeout + $timeout_left}]
    }
    if {[string is digit $lifetime] and [string is digit $lifetime_left]} {
        set created [expr {$now - $lifetime + $lifetime_left}]
    }
    call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] created=$created touched=$touched timeout=$timeout timeout_remaining=$timeout_left lifetime=$lifetime lifetime_remaining=$lifetime_left"
}

when HTTP_REQUEST {
    set ldb_bulk 0
    set ldb_path [HTTP::path]
    switch -exact -- $ldb_path {
        "/info" - "/whoami" - "/load" - "/bulk_load" - "/dump" - "/probe" - "/reset" - "/table" - "/meta" - "/names" { }
        default {
            call LOCALDB_HARNESS::refuse 404 "no such endpoint"
            return
        }
    }
    if {$ldb_path eq "/bulk_load"} {
        set ldb_method POST
    } else {
        set ldb_method GET
    }
    if {[HTTP::method] ne $ldb_method} {
        call LOCALDB_HARNESS::refuse 405 "want $ldb_method"
        return
    }
    if {$ldb_path ne "/info" and $ldb_path ne "/whoami"} {
        set ldb_status [call LOCALDB_HARNESS::authorized]
        if {$ldb_status != 200} {
            call LOCALDB_HARNESS::refuse $ldb_status "not allowed"
            return
        }
    }
    if {$ldb_path eq "/bulk_load"} {
        set ldb_length [HTTP::header value "Content-Length"]
        if {[HTTP::header exists "Transfer-Encoding"] or not [regexp {^[0-9]+$} $ldb_length] or [regexp {^0+$} $ldb_length]} {
            call LOCALDB_HARNESS::refuse 411 "want a Content-Length"
            return
        }
        # never compared as a number before its digits are few; a leading 0 is not octal
        set ldb_length [string trimleft $ldb_length "0"]
        if {[string length $ldb_length] > 10 or $ldb_length > $static::harness_max_body} {
            call LOCALDB_HARNESS::refuse 413 "body above $static::harness_max_body bytes"
            return
        }
        if {[string tolower [HTTP::header value "Expect"]] eq "100-continue"} {
            TCP::respond "HTTP/1.1 100 Continue\r\n\r\n"
        }
        set ldb_bulk 1
        set ldb_timer [after $static::harness_body_ms {
            TCP::respond "HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain\r\nContent-Length: 18\r\nConnection: close\r\n\r\nbody came too late"
            TCP::close
        }]
        HTTP::collect $ldb_length
        return
    }
    # A percent sign without two hexadecimal digits is refused, not guessed at.
    if {[HTTP::query] contains "%" and [regexp {%([^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)} [HTTP::query]]} {
        call LOCALDB_HARNESS::refuse 400 "bad percent escape"
        return
    }
    switch -exact -- $ldb_path {
        "/info" {
            call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] total_tmms=[TMM::cmp_count]"
        }
        "/whoami" {
            call LOCALDB_HARNESS::answer 200 [call LOCALDB::whoami]
        }
        "/load" {
            set ldb_key [call LOCALDB_HARNESS::param key]
            if {$ldb_key eq ""} {
                call LOCALDB_HARNESS::refuse 400 "key is missing or empty"
                return
            }
            call LOCALDB::set $ldb_key [call LOCALDB_HARNESS::param val]
            call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] subtable=[call LOCALDB::init] key=[call LOCALDB::encode $ldb_key]"
        }
        "/dump" {
            set ldb_words [list]
            foreach ldb_key [call LOCALDB::keys] {
                lappend ldb_words [call LOCALDB::encode $ldb_key]
            }
            call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] count=[llength $ldb_words] keys=[join $ldb_words " "]"
        }
        "/probe" {
            set ldb_name [call LOCALDB_HARNESS::param name]
            if {$ldb_name eq ""} {
                set ldb_name uuid_01
            }
            set ldb_result [call LOCALDB::probe $ldb_name]
            call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] subtable=[call LOCALDB::encode $ldb_name] clicks=[lindex $ldb_result 0] entries=[lindex $ldb_result 1] [lindex $ldb_result 2]"
        }
        "/reset" {
            if {[call LOCALDB_HARNESS::has_param name]} {
                set ldb_name [call LOCALDB_HARNESS::param name]
                if {$ldb_name eq ""} {
                    # far more often an unset variable than a wish
                    call LOCALDB_HARNESS::refuse 400 "name is empty"
                    return
                }
                call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] deleted=[call LOCALDB::delete_table $ldb_name]"
            } else {
                call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] deleted=[call LOCALDB::reset_entries]"
            }
        }
        "/names" {
            set ldb_words [list]
            foreach ldb_name [call LOCALDB::names] {
                set ldb_word [call LOCALDB::encode $ldb_name]
                # A list without a count: what looks like a closing field of
                # the answer has its first letter encoded.
                if {$ldb_word starts_with "slot="} {
                    set ldb_word "%73[string range $ldb_word 1 end]"
                } elseif {$ldb_word starts_with "node="} {
                    set ldb_word "%6E[string range $ldb_word 1 end]"
                }
                lappend ldb_words $ldb_word
            }
            call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] names=[join $ldb_words " "]"
        }
        "/table" {
            call LOCALDB_HARNESS::table_answer
        }
        "/meta" {
            call LOCALDB_HARNESS::meta_answer
        }
    }
}

when HTTP_REQUEST_DATA {
    if {not [info exists ldb_bulk] or $ldb_bulk == 0} {
        return
    }
    after cancel $ldb_timer
    set ldb_bulk 0
    set ldb_result [call LOCALDB::set_many [HTTP::payload $ldb_length] 1]
    set ldb_written [lindex $ldb_result 0]
    set ldb_clicks [lindex $ldb_result 1]
    set ldb_each 0
    if {$ldb_written > 0} {
        set ldb_each [expr {$ldb_clicks / $ldb_written}]
    }
    call LOCALDB_HARNESS::answer 200 "tmm=[TMM::cmp_unit] subtable=[call LOCALDB::init] written=$ldb_written elapsed_clicks=$ldb_clicks clicks_per_write=$ldb_each"
}
