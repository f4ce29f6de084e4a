# A bench for iRules: their environment under tclsh 8.6, one interpreter per
# TMM, behind a real socket on 127.0.0.1.
#
#   tclsh bench.tcl TMMS SEED NAME=FILE...
#
# prints "LISTEN port" and then, per line, "LOG text" for what rules log and
# "OK ..." or "ERR ..." for each command read from stdin:
#
#   reload NAME FILE   load the rule anew: statics as RULE_INIT leaves them, entries stay
#   unload NAME        take the rule away and cut the connections that it serves
#   restart N          TMM N starts anew: statics and its subtables are gone
#   advance S          let S seconds pass for timeouts, lifetimes, clock seconds
#   owner NAME         the TMM that holds a subtable
#   state              TMMs, subtables, entries, connections served
#
# It ends when stdin does.
#
# What is as on a BIG-IP: events, variables per connection, statics per TMM,
# procs and call, the table command with its timers, table denied in
# RULE_INIT, a Tcl error or an unanswered request resetting the connection,
# a remote table command suspending its connection while the TMM serves
# others, commands of Tcl 8.5 and later and those denied to rules absent.
# What isn't: the clicks are computed (own: 3 to 18; other: 121 upward), one
# process serves all TMMs, no pools, profiles, TLS, chassis or mirroring, and
# syntax that only Tcl 8.5 knows is not refused.

set dir [file dirname [info script]]
foreach part {table translate} {
    source [file join $dir $part.tcl]
}
if {$argc < 2} {
    puts stderr "usage: tclsh bench.tcl TMMS SEED NAME=FILE..."
    exit 2
}
set tmms [lindex $argv 0]
set seed [lindex $argv 1]
expr {srand($seed % 2147483646 + 1)}

set max_conns 1024      ;# connections at a time; more are closed at once
set max_head 131072     ;# bytes of a request's head
set max_body 67108864   ;# bytes of a body, whatever a rule allows
set idle_ms 30000       ;# of a connection without progress
set served 0
set conn_seq 0
array set sources {}    ;# translated rules
set order {}            ;# their names, as loaded
array set c {}          ;# c(conn,field)
array set open {}       ;# open(conn): its channel

proc say {line} {
    puts stdout $line
    flush stdout
}

# Costs, in clicks. Own writes take 3 to 18; others at least 121, and now and
# then very much more.
proc cost {remote} {
    if {!$remote} {
        set n [expr {3 + int(-log(1 - rand()) * 3)}]
        return [expr {$n > 18 ? 18 : $n}]
    }
    set n [expr {121 + int(-log(1 - rand()) * 900)}]
    return [expr {$n > 300000 ? 300000 : $n}]
}

# What TMMs ask for.

proc up_table {tmm op words} {
    set failed [catch {table::run $op $words} got]
    if {$failed} {
        return [list 1 0 1 $got]
    }
    lassign $got where result
    set remote [expr {[table::owner $where] != $tmm}]
    return [list 0 $remote [cost $remote] $result]
}

proc up_log {tmm text rule event facility} {
    set n [expr {$tmm == 0 ? "" : $tmm}]
    set line "[clock format [table::now] -format {%b %e %H:%M:%S}] bench info tmm$n\[[pid]\]: Rule /Common/$rule <$event>: $text"
    say "LOG [string range $line 0 1023]"
}

proc up_resume_later {tmm coroutine} {
    after 0 [list resume $tmm $coroutine]
}
proc resume {tmm coroutine} {
    global open
    if {![interp exists tmm$tmm] || [interp eval tmm$tmm [list info commands $coroutine]] eq ""} {
        return
    }
    # Its name is ::b::co.CONN.NUMBER. What a connection was doing ends with it.
    if {[info exists open([lindex [split $coroutine "."] 1])]} {
        interp eval tmm$tmm [list $coroutine]
    } else {
        interp eval tmm$tmm [list ::b::tcl_rename $coroutine ""]
    }
}

proc up_after {tmm ms conn rule event script} {
    global c
    set id [after $ms [list fire $tmm $conn $rule $event $script]]
    lappend c($conn,timers) $id
    return $id
}
proc up_after_cancel {tmm id} {
    after cancel $id
}
proc fire {tmm conn rule event script} {
    global open
    if {[info exists open($conn)] && [interp exists tmm$tmm]} {
        interp eval tmm$tmm [list ::b::later $conn $rule $event $script]
    }
}

proc up_collect {tmm conn length} {
    global c
    if {[info exists c($conn,state)]} {
        set c($conn,collect) $length
    }
}

proc up_respond {tmm conn status body headers} {
    global c open
    if {![info exists open($conn)] || $c($conn,answered)} {
        return
    }
    set c($conn,answered) 1
    set reasons {200 OK 400 {Bad Request} 401 Unauthorized 403 Forbidden 404 {Not Found} 405 {Method Not Allowed} 408 {Request Timeout} 411 {Length Required} 413 {Request Entity Too Large} 500 {Internal Server Error}}
    set reason Unknown
    if {[dict exists $reasons $status]} {
        set reason [dict get $reasons $status]
    }
    set head "HTTP/1.1 $status $reason\r\n"
    foreach {k v} $headers {
        append head "$k: $v\r\n"
        if {[string equal -nocase $k connection] && [string equal -nocase $v close]} {
            set c($conn,close) 1
        }
    }
    append head "Content-Length: [string length $body]\r\n\r\n"
    catch {puts -nonewline $open($conn) $head$body}
}

proc up_raw {tmm conn data} {
    global open
    if {[info exists open($conn)]} {
        catch {
            puts -nonewline $open($conn) $data
            flush $open($conn)
        }
    }
}

proc up_close {tmm conn} {
    global c open
    if {[info exists open($conn)]} {
        set c($conn,answered) 1
        set c($conn,close) 1
    }
}

# up_abort cuts a connection off without an answer.
proc up_abort {tmm conn} {
    drop $conn
}

# up_done hears that an event has ended.
proc up_done {tmm conn event} {
    global c open
    if {![info exists open($conn)]} {
        return
    }
    if {$event eq "after"} {
        if {$c($conn,close)} {
            finish $conn
        }
        return
    }
    if {$c($conn,answered)} {
        finish $conn
        return
    }
    if {$c($conn,collect) > 0} {
        set c($conn,state) body
        after 0 [list progress $conn]
        return
    }
    # Nobody answered and there is no pool.
    drop $conn
}

# Connections.

proc accept {chan addr port} {
    global c open conn_seq max_conns tmms seed idle_ms served
    if {[array size open] >= $max_conns} {
        close $chan
        return
    }
    incr served
    set conn [incr conn_seq]
    set tmm [expr {(((($port ^ $seed) * 2654435761) & 0xffffffff) >> 9) % $tmms}]
    fconfigure $chan -blocking 0 -translation binary -buffering full -buffersize 65536
    set open($conn) $chan
    array set c [list $conn,tmm $tmm $conn,state head $conn,buf "" $conn,answered 0 $conn,close 0 \
        $conn,collect 0 $conn,timers {} $conn,addr $addr $conn,port $port]
    set c($conn,idle) [after $idle_ms [list drop $conn]]
    interp eval tmm$tmm [list set ::b::vars($conn) {}]
    fileevent $chan readable [list readable $conn]
}

proc readable {conn} {
    global c open max_head max_body
    set chan $open($conn)
    if {[catch {read $chan 1048576} data]} {
        drop $conn
        return
    }
    if {$data eq "" && [eof $chan]} {
        if {$c($conn,state) eq "busy"} {
            # The client went while the event runs: it is told at its end.
            fileevent $chan readable {}
            set c($conn,close) 1
            return
        }
        drop $conn
        return
    }
    append c($conn,buf) $data
    switch -exact -- $c($conn,state) {
        busy {
            # What comes before the answer waits, within reason.
            if {[string length $c($conn,buf)] > $max_body} {
                drop $conn
            }
        }
        head - body { progress $conn }
    }
}

# progress runs the next event when enough has come for it.
proc progress {conn} {
    global c open max_head max_body
    if {![info exists open($conn)]} {
        return
    }
    set tmm $c($conn,tmm)
    switch -exact -- $c($conn,state) {
        head {
            set end [string first "\r\n\r\n" $c($conn,buf)]
            if {$end < 0} {
                if {[string length $c($conn,buf)] > $max_head} {
                    drop $conn
                }
                return
            }
            set head [string range $c($conn,buf) 0 [expr {$end - 1}]]
            set c($conn,buf) [string range $c($conn,buf) [expr {$end + 4}] end]
            if {![request $conn $tmm $head]} {
                drop $conn
                return
            }
            set c($conn,state) busy
            run $conn $tmm HTTP_REQUEST
        }
        body {
            if {[string length $c($conn,buf)] < $c($conn,collect)} {
                if {[string length $c($conn,buf)] > $max_body} {
                    drop $conn
                }
                return
            }
            interp eval tmm$tmm [list set ::b::req($conn,payload) $c($conn,buf)]
            set c($conn,buf) ""
            set c($conn,collect) 0
            set c($conn,state) busy
            run $conn $tmm HTTP_REQUEST_DATA
        }
    }
}

# request hands a parsed head to the TMM; 0 when it is none.
proc request {conn tmm head} {
    global c
    set lines [split [string map [list "\r\n" "\n"] $head] "\n"]
    if {![regexp {^([A-Z]+) ([^ ]+) HTTP/1\.([01])$} [lindex $lines 0] -> method uri minor]} {
        return 0
    }
    set headers {}
    set length 0
    foreach line [lrange $lines 1 end] {
        set at [string first ":" $line]
        if {$at < 1} {
            return 0
        }
        set k [string range $line 0 [expr {$at - 1}]]
        set v [string trim [string range $line [expr {$at + 1}] end]]
        lappend headers $k $v
        if {[string equal -nocase $k connection] && [string equal -nocase $v close]} {
            set c($conn,close) 1
        }
        if {[string equal -nocase $k content-length]} {
            set length $v
        }
    }
    set c($conn,unread) [expr {$length ne "0"}]
    if {$minor == 0} {
        set c($conn,close) 1
    }
    set at [string first "?" $uri]
    if {$at < 0} {
        set path $uri
        set query ""
    } else {
        set path [string range $uri 0 [expr {$at - 1}]]
        set query [string range $uri [expr {$at + 1}] end]
    }
    interp eval tmm$tmm [list array set ::b::req [list $conn,method $method $conn,uri $uri $conn,path $path \
        $conn,query $query $conn,version 1.$minor $conn,headers $headers $conn,payload "" \
        $conn,addr $c($conn,addr) $conn,port $c($conn,port)]]
    return 1
}

proc run {conn tmm event} {
    interp eval tmm$tmm [list ::b::serve $conn $event]
}

# finish sends what was answered and closes, or waits for the next request.
proc finish {conn} {
    global c open
    if {![info exists open($conn)]} {
        return
    }
    set chan $open($conn)
    if {!$c($conn,close) && $c($conn,state) eq "busy" && [string length $c($conn,buf)] == 0} {
        catch {flush $chan}
        set c($conn,answered) 0
        set c($conn,collect) 0
        set c($conn,state) head
        return
    }
    # A body that is still coming is read and thrown away for a while, so that
    # the answer isn't lost to a reset.
    set lingers [expr {$c($conn,unread) && $c($conn,collect) == 0}]
    forget $conn
    if {$lingers} {
        catch {
            flush $chan
            close $chan write
            fileevent $chan readable [list linger $chan]
            after 2000 [list catch [list close $chan]]
        }
    } else {
        catch {close $chan}
    }
}

proc linger {chan} {
    if {[catch {read $chan 1048576} data] || [eof $chan]} {
        catch {close $chan}
    }
}

proc drop {conn} {
    global open
    if {[info exists open($conn)]} {
        set chan $open($conn)
        forget $conn
        catch {close $chan}
    }
}

proc forget {conn} {
    global c open
    set tmm $c($conn,tmm)
    after cancel $c($conn,idle)
    foreach id $c($conn,timers) {
        after cancel $id
    }
    if {[interp exists tmm$tmm]} {
        interp eval tmm$tmm [list ::b::drop_conn $conn]
    }
    unset open($conn)
    foreach f {tmm state buf answered close collect timers addr port idle unread} {
        unset -nocomplain c($conn,$f)
    }
}

# TMMs and rules.

proc start_tmm {n} {
    global dir tmms order sources
    interp create tmm$n
    interp eval tmm$n [list namespace eval ::b [list variable tmm $n]]
    interp eval tmm$n [list namespace eval ::b [list variable tmms $tmms]]
    foreach name {table log resume_later after after_cancel collect respond raw close abort done} {
        interp alias tmm$n ::b::up_$name {} up_$name $n
    }
    interp alias tmm$n ::b::up_seconds {} table::now
    interp eval tmm$n [list source [file join $dir tmm.tcl]]
    foreach rule $order {
        interp eval tmm$n [list ::b::define $rule $sources($rule)]
    }
}

proc load_rule {name file} {
    global tmms order sources
    set f [open $file]
    fconfigure $f -encoding utf-8
    set text [read $f]
    close $f
    set sources($name) [translate::script $text]
    if {$name ni $order} {
        lappend order $name
    }
    for {set n 0} {$n < $tmms} {incr n} {
        if {[interp exists tmm$n]} {
            interp eval tmm$n [list ::b::define $name $sources($name)]
        }
    }
}

proc unload_rule {name} {
    global tmms order sources open
    set order [lsearch -all -inline -not -exact $order $name]
    unset -nocomplain sources($name)
    for {set n 0} {$n < $tmms} {incr n} {
        interp eval tmm$n [list ::b::forget $name]
    }
    foreach conn [array names open] {
        drop $conn
    }
}

proc restart_tmm {n} {
    global c open
    foreach conn [array names open] {
        if {$c($conn,tmm) == $n} {
            drop $conn
        }
    }
    interp delete tmm$n
    foreach name [array names table::data] {
        if {[table::owner $name] == $n} {
            unset table::data($name) table::soon($name)
        }
    }
    start_tmm $n
}

proc state {} {
    global tmms served
    set entries 0
    foreach name [array names table::data] {
        incr entries [table::size $name]
    }
    return "tmms=$tmms subtables=[array size table::data] entries=$entries connections=$served"
}

proc command {} {
    global tmms
    if {[gets stdin line] < 0} {
        if {[eof stdin]} {
            exit 0
        }
        return
    }
    if {[catch {
        lassign $line what a b
        switch -exact -- $what {
            reload { load_rule $a $b; set got "" }
            unload { unload_rule $a; set got "" }
            restart { restart_tmm $a; set got "" }
            advance { incr table::shift $a; set got "" }
            owner { set got [table::owner $a] }
            state { set got [state] }
            default { error "unknown command" }
        }
    } err]} {
        say "ERR [string map [list "\n" " "] $err]"
    } else {
        say "OK $got"
    }
}

fconfigure stdout -translation binary
for {set n 0} {$n < $tmms} {incr n} {
    start_tmm $n
}
foreach rule [lrange $argv 2 end] {
    set at [string first "=" $rule]
    load_rule [string range $rule 0 [expr {$at - 1}]] [string range $rule [expr {$at + 1}] end]
}
set server [socket -server accept -myaddr 127.0.0.1 0]
fconfigure stdin -blocking 0
fileevent stdin readable command
say "LISTEN [lindex [fconfigure $server -sockname] 2]"
vwait forever
