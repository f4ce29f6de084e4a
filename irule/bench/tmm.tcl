# The inside of one TMM: what a rule sees. Loaded into an interpreter of its
# own per TMM. Everything of the emulation lives in ::b and below; the aliases
# ::b::up_* lead to bench.tcl.

namespace eval ::b {
    variable conn ""     ;# the connection being served
    variable event ""    ;# the event being run
    variable rule ""     ;# the rule it belongs to
    variable req         ;# req(conn,field) of requests
    variable vars        ;# vars(conn): the connection's variables
    variable clicks 0    ;# this TMM's clock
    variable handlers    ;# handlers(EVENT): list of {rule proc}
    variable seq 0
    array set req {}
    array set vars {}
    array set handlers {}
}
namespace eval ::static {}

# Commands that Tcl 8.4 doesn't have, and those that rules are denied, go out
# of reach.
foreach ::b::c {
    dict lassign lrepeat lreverse apply try throw tailcall coroutine yield yieldto lmap
    cd eof encoding exec exit fblocked fconfigure fcopy file fileevent flush gets glob
    interp load namespace open package pid puts pwd read rename seek socket source tell time
    unknown update uplevel vwait chan zlib unload auto_load auto_execok auto_import auto_qualify
} {
    if {[info commands ::$::b::c] ne "" && $::b::c ni {rename namespace}} {
        rename ::$::b::c ::b::tcl_$::b::c
    }
}
rename ::clock ::b::tcl_clock
rename ::after ::b::tcl_after
rename ::proc ::b::tcl_proc
rename ::namespace ::b::tcl_namespace
rename ::rename ::b::tcl_rename

# The word operators.
::b::tcl_proc ::tcl::mathfunc::rule_starts_with {a b} {
    return [string equal -length [string length $b] $a $b]
}
::b::tcl_proc ::tcl::mathfunc::rule_ends_with {a b} {
    return [string equal [string range $a end-[expr {[string length $b] - 1}] end] $b]
}
::b::tcl_proc ::tcl::mathfunc::rule_contains {a b} {
    return [expr {[string first $b $a] >= 0}]
}
::b::tcl_proc ::tcl::mathfunc::rule_matches_glob {a b} {
    return [string match $b $a]
}
::b::tcl_proc ::tcl::mathfunc::rule_matches {a b} {
    return [string match $b $a]
}
::b::tcl_proc ::tcl::mathfunc::rule_matches_regex {a b} {
    return [regexp -- $b $a]
}

# Loading.

::b::tcl_proc ::when {event args} {
    if {[llength $args] == 0} {
        return -code error "wrong # args: when EVENT { script }"
    }
    set name "::on.[incr ::b::seq].$event"
    # The variables of a connection are the locals of its events. What follows
    # the body runs however it ends.
    ::b::tcl_proc $name {__conn} "
        foreach {__n __v} \$::b::vars(\$__conn) { set \$__n \$__v }
        unset -nocomplain __n __v
        set __code \[catch {[lindex $args end]
        } __result\]
        ::b::ended \$__conn \$__code \$__result
    "
    lappend ::b::handlers($event) [list $::b::rule $name]
}

# A proc gets a name that no command of a rule has, so that one called set
# hides nothing.
# It is a global one: static::x is looked up from its namespace.
::b::tcl_proc ::proc {name arguments body} {
    ::b::tcl_proc "::called.$::b::rule.$name" $arguments $body
}

::b::tcl_proc ::call {name args} {
    regsub {^/Common/} $name "" name
    regsub {::} $name "." name
    if {[string first "." $name] < 0} {
        set name "$::b::rule.$name"
    }
    if {[info commands ::called.$name] eq ""} {
        return -code error "call: no proc \"$name\""
    }
    ::b::tcl_tailcall ::called.$name {*}$args
}

# define loads one translated rule and runs its RULE_INIT.
::b::tcl_proc ::b::define {rule source} {
    ::b::forget $rule
    set ::b::rule $rule
    set ::b::event loading
    uplevel_global $source
    if {[info exists ::b::handlers(RULE_INIT)]} {
        foreach h $::b::handlers(RULE_INIT) {
            ::b::tcl_lassign $h owner name
            if {$owner eq $rule} {
                set ::b::vars(init) {}
                ::b::enter init RULE_INIT $rule
                $name init
            }
        }
    }
    set ::b::conn ""
    set ::b::event ""
}
::b::tcl_proc ::b::uplevel_global {script} {
    ::b::tcl_uplevel #0 $script
}

::b::tcl_proc ::b::forget {rule} {
    foreach event [array names ::b::handlers] {
        set kept {}
        foreach h $::b::handlers($event) {
            if {[lindex $h 0] ne $rule} {
                lappend kept $h
            }
        }
        if {[llength $kept] > 0} {
            set ::b::handlers($event) $kept
        } else {
            unset ::b::handlers($event)
        }
    }
    foreach p [info procs ::called.$rule.*] {
        ::b::tcl_rename $p ""
    }
}

# Running.

::b::tcl_proc ::b::enter {conn event rule} {
    set ::b::conn $conn
    set ::b::event $event
    set ::b::rule $rule
}

# ended is called at the end of every event's body, one level below it.
::b::tcl_proc ::b::ended {conn code result} {
    if {$code == 1} {
        ::b::up_log "01220001:3: TCL error: /Common/$::b::rule <$::b::event> - [string range [string map [list \n { }] $result] 0 300]" $::b::rule $::b::event err
        ::b::up_abort $conn
    }
    if {![info exists ::b::vars($conn)]} {
        return
    }
    set kept {}
    foreach v [::b::tcl_uplevel 1 {info locals}] {
        if {[string match __* $v]} {
            continue
        }
        upvar 1 $v value
        if {[info exists value] && ![array exists value]} {
            lappend kept $v $value
        }
    }
    set ::b::vars($conn) $kept
}

# serve runs an event of a connection, all its handlers in turn, as a
# coroutine: a table command that leaves the TMM suspends it. Returns nothing;
# bench.tcl hears of the end by up_done.
::b::tcl_proc ::b::serve {conn event} {
    ::b::tcl_coroutine ::b::co.$conn.[incr ::b::seq] ::b::serve_all $conn $event
}
::b::tcl_proc ::b::serve_all {conn event} {
    if {[info exists ::b::handlers($event)]} {
        foreach h $::b::handlers($event) {
            ::b::tcl_lassign $h rule name
            ::b::enter $conn $event $rule
            $name $conn
            if {![info exists ::b::vars($conn)]} {
                return
            }
        }
    }
    ::b::up_done $conn $event
}

# later runs the script of an after command in its connection.
::b::tcl_proc ::b::later {conn rule event script} {
    set name ::timer.[incr ::b::seq]
    ::b::tcl_proc $name {__conn __script} {
        foreach {__n __v} $::b::vars($__conn) { set $__n $__v }
        set __code [catch $__script __result]
        ::b::ended $__conn $__code $__result
    }
    ::b::tcl_coroutine ::b::co.$conn.[incr ::b::seq] ::b::later_all $name $conn $rule $event $script
}
::b::tcl_proc ::b::later_all {name conn rule event script} {
    ::b::enter $conn $event $rule
    $name $conn $script
    ::b::tcl_rename $name ""
    ::b::up_done $conn after
}

::b::tcl_proc ::b::suspend {} {
    set saved [list $::b::conn $::b::event $::b::rule]
    ::b::up_resume_later [info coroutine]
    ::b::tcl_yield
    ::b::enter {*}$saved
}

::b::tcl_proc ::b::drop_conn {conn} {
    unset -nocomplain ::b::vars($conn)
    array unset ::b::req $conn,*
}

# The commands of rules.

::b::tcl_proc ::table {op args} {
    if {$::b::event in {RULE_INIT loading ""}} {
        return -code error "command is not valid in current event context ($::b::event)"
    }
    ::b::tcl_lassign [::b::up_table $op $args] failed remote cost result
    incr ::b::clicks $cost
    if {$remote && [info coroutine] ne ""} {
        ::b::suspend
    }
    if {$failed} {
        return -code error $result
    }
    return $result
}

::b::tcl_proc ::clock {what args} {
    switch -exact -- $what {
        clicks { return [incr ::b::clicks] }
        seconds { return [::b::up_seconds] }
    }
    return [::b::tcl_clock $what {*}$args]
}

::b::tcl_proc ::log {args} {
    set facility [lindex $args 0]
    if {[llength $args] == 1} {
        set facility local0.info
    }
    ::b::up_log [lindex $args end] $::b::rule $::b::event $facility
}

::b::tcl_proc ::after {what args} {
    if {$what eq "cancel"} {
        foreach id $args {
            ::b::up_after_cancel $id
        }
        return
    }
    if {[llength $args] != 1} {
        return -code error "after: want milliseconds and a script"
    }
    return [::b::up_after $what $::b::conn $::b::rule $::b::event [lindex $args 0]]
}

# in_request fails outside the events of a request.
::b::tcl_proc ::b::in_request {name} {
    if {$::b::event ni {HTTP_REQUEST HTTP_REQUEST_DATA}} {
        return -code error "$name: command is not valid in current event context ($::b::event)"
    }
}

foreach ::b::c {HTTP URI TMM TCP IP} {
    ::b::tcl_namespace eval ::$::b::c {}
}

::b::tcl_proc ::TMM::cmp_unit {} { return $::b::tmm }
::b::tcl_proc ::TMM::cmp_count {} { return $::b::tmms }

::b::tcl_proc ::HTTP::method {} { ::b::in_request HTTP::method; return $::b::req($::b::conn,method) }
::b::tcl_proc ::HTTP::uri {} { ::b::in_request HTTP::uri; return $::b::req($::b::conn,uri) }
::b::tcl_proc ::HTTP::path {} { ::b::in_request HTTP::path; return $::b::req($::b::conn,path) }
::b::tcl_proc ::HTTP::query {} { ::b::in_request HTTP::query; return $::b::req($::b::conn,query) }
::b::tcl_proc ::HTTP::version {} { ::b::in_request HTTP::version; return $::b::req($::b::conn,version) }
::b::tcl_proc ::HTTP::host {} { return [::HTTP::header value host] }
::b::tcl_proc ::HTTP::header {what args} {
    ::b::in_request HTTP::header
    set name [lindex $args 0]
    switch -exact -- $what {
        exists - value { }
        names {
            set names {}
            foreach {k v} $::b::req($::b::conn,headers) { lappend names $k }
            return $names
        }
        default { set name $what; set what value }
    }
    set found 0
    set value ""
    foreach {k v} $::b::req($::b::conn,headers) {
        if {[string equal -nocase $k $name]} {
            set found 1
            set value $v
        }
    }
    if {$what eq "exists"} {
        return $found
    }
    return $value
}
::b::tcl_proc ::HTTP::payload {args} {
    ::b::in_request HTTP::payload
    set p $::b::req($::b::conn,payload)
    if {[llength $args] == 0} {
        return $p
    }
    if {[lindex $args 0] eq "length"} {
        return [string length $p]
    }
    if {[llength $args] == 1} {
        return [string range $p 0 [expr {[lindex $args 0] - 1}]]
    }
    return [string range $p [lindex $args 0] [expr {[lindex $args 0] + [lindex $args 1] - 1}]]
}
::b::tcl_proc ::HTTP::collect {{length 1048576}} {
    ::b::in_request HTTP::collect
    if {![string is digit -strict $length]} {
        return -code error "HTTP::collect: bad length \"$length\""
    }
    ::b::up_collect $::b::conn $length
}
::b::tcl_proc ::HTTP::respond {status args} {
    ::b::in_request HTTP::respond
    set body ""
    set headers {}
    for {set i 0} {$i < [llength $args]} {incr i} {
        set a [lindex $args $i]
        switch -exact -- $a {
            content { set body [lindex $args [incr i]] }
            noserver { }
            -version { incr i }
            default { lappend headers $a [lindex $args [incr i]] }
        }
    }
    ::b::up_respond $::b::conn $status $body $headers
}
::b::tcl_proc ::HTTP::close {} { ::b::up_close $::b::conn }

# decode turns %XX into bytes, once; a percent sign without two hexadecimal
# digits stays.
::b::tcl_proc ::URI::decode {s} {
    if {[string first "%" $s] < 0} {
        return $s
    }
    set parts [split $s "%"]
    set out [lindex $parts 0]
    foreach part [lrange $parts 1 end] {
        if {[string is xdigit -strict [string range $part 0 1]] && [string length $part] >= 2} {
            append out [format %c [scan [string range $part 0 1] %x]] [string range $part 2 end]
        } else {
            append out "%" $part
        }
    }
    return $out
}
::b::tcl_proc ::URI::encode {s} {
    set out ""
    foreach c [split $s ""] {
        if {[regexp {^[A-Za-z0-9._~-]$} $c]} {
            append out $c
        } else {
            append out [format %%%02X [scan $c %c]]
        }
    }
    return $out
}
::b::tcl_proc ::URI::path {uri} { return [lindex [split $uri "?"] 0] }
::b::tcl_proc ::URI::query {uri args} {
    set q ""
    regexp {\?(.*)$} $uri -> q
    if {[llength $args] == 0} {
        return $q
    }
    foreach pair [split $q "&"] {
        if {[string match "[lindex $args 0]=*" $pair]} {
            return [string range $pair [expr {[string length [lindex $args 0]] + 1}] end]
        }
    }
    return ""
}

::b::tcl_proc ::TCP::respond {data} { ::b::up_raw $::b::conn $data }
::b::tcl_proc ::TCP::close {} { ::b::up_close $::b::conn }
::b::tcl_proc ::TCP::client_port {} { return $::b::req($::b::conn,port) }
::b::tcl_proc ::reject {} { ::b::up_abort $::b::conn }
::b::tcl_proc ::IP::client_addr {} { return $::b::req($::b::conn,addr) }

# addr compares two addresses or ranges, IPv4 only: any other is unequal.
::b::tcl_proc ::IP::addr {a how b} {
    if {$how ne "equals"} {
        return -code error "IP::addr: bad option \"$how\""
    }
    ::b::tcl_lassign [split $b "/"] net bits
    if {$bits eq ""} {
        set bits 32
    }
    set numbers {}
    foreach x [list [lindex [split $a "/"] 0] $net] {
        if {[scan $x "%d.%d.%d.%d%s" p q r s rest] != 4} {
            return 0
        }
        lappend numbers [expr {($p << 24) | ($q << 16) | ($r << 8) | $s}]
    }
    set mask [expr {(0xffffffff << (32 - $bits)) & 0xffffffff}]
    return [expr {([lindex $numbers 0] & $mask) == ([lindex $numbers 1] & $mask)}]
}

::b::tcl_proc ::getfield {s separator n} {
    set parts {}
    set at 0
    while {[set next [string first $separator $s $at]] >= 0} {
        lappend parts [string range $s $at [expr {$next - 1}]]
        set at [expr {$next + [string length $separator]}]
    }
    lappend parts [string range $s $at end]
    return [lindex $parts [expr {$n - 1}]]
}
