# The session table of the emulated machine: subtables, each on the TMM that
# a hash of its name picks, with idle timeouts and lifetimes.
#
# An entry is a list: value timeout lifetime created touched; a timer is a
# number of seconds or "indefinite". Whole seconds, as on a BIG-IP.

namespace eval table {
    variable data      ;# data(subtable): dictionary of key to entry
    variable soon      ;# soon(subtable): no entry of it ends before this second
    array set data {}
    array set soon {}
    variable shift 0   ;# seconds that the test has let pass
    variable expired 0
    # the options of each subcommand
    variable known [dict create \
        set {notouch excl mustexist} add notouch replace notouch lookup notouch \
        incr {notouch mustexist} append {notouch mustexist} delete all \
        keys {notouch count} timeout remaining lifetime remaining]
}

proc table::now {} {
    variable shift
    return [expr {[clock seconds] + $shift}]
}

# owner is the TMM that holds a subtable. crc32 alone is linear in its input:
# the multiplication spreads it.
proc table::owner {name} {
    set h [zlib crc32 [encoding convertto utf-8 "$::seed/$name"]]
    return [expr {((($h * 2654435761) & 0xffffffff) >> 7) % $::tmms}]
}

# ends is the second at which an entry is no more.
proc table::ends {entry} {
    lassign $entry value timeout lifetime created touched
    set end 9223372036854775807
    if {$timeout ne "indefinite"} {
        set end [expr {$touched + $timeout}]
    }
    if {$lifetime ne "indefinite" && $created + $lifetime < $end} {
        set end [expr {$created + $lifetime}]
    }
    return $end
}

# purge removes the ended entries of a subtable, looking only when one may
# have ended.
proc table::purge {name} {
    variable data
    variable soon
    variable expired
    if {![info exists data($name)]} {
        return
    }
    set now [now]
    if {$now < $soon($name)} {
        return
    }
    set next 9223372036854775807
    set dead {}
    dict for {k entry} $data($name) {
        set end [ends $entry]
        if {$end <= $now} {
            lappend dead $k
        } elseif {$end < $next} {
            set next $end
        }
    }
    foreach k $dead {
        dict unset data($name) $k
        incr expired
    }
    set soon($name) $next
    if {[dict size $data($name)] == 0} {
        unset data($name) soon($name)
    }
}

proc table::put {name key entry} {
    variable data
    variable soon
    dict set data($name) $key $entry
    set end [ends $entry]
    if {![info exists soon($name)] || $end < $soon($name)} {
        set soon($name) $end
    }
}

# get returns the entry, or nothing.
proc table::get {name key} {
    variable data
    purge $name
    if {[info exists data($name)] && [dict exists $data($name) $key]} {
        return [dict get $data($name) $key]
    }
    return ""
}

proc table::size {name} {
    variable data
    purge $name
    if {[info exists data($name)]} {
        return [dict size $data($name)]
    }
    return 0
}

# timer reads a timer argument; kept is what 0 leaves as it is.
proc table::timer {text kept} {
    if {$text eq "indef" || $text eq "indefinite"} {
        return indefinite
    }
    if {![string is digit -strict $text]} {
        error "invalid timer \"$text\": must be indefinite or a positive integer"
    }
    scan $text %lld n
    return [expr {$n == 0 ? $kept : $n}]
}

# left is what is left of a timer.
proc table::left {timer since} {
    if {$timer eq "indefinite"} {
        return indefinite
    }
    return [expr {$timer - ([now] - $since)}]
}

# run carries out one command. args are its words after "table OP". Returns
# the subtable's name ("" for none: each key is then hashed by itself) and
# the result.
proc table::run {op words} {
    set flags {notouch 0 excl 0 mustexist 0 remaining 0 count 0 all 0}
    variable known
    if {![dict exists $known $op]} {
        error "bad option \"$op\": must be set, add, replace, lookup, incr, append, delete, timeout, lifetime, or keys"
    }
    set subtable ""
    set given 0
    # Options come first, and whatever starts with - is taken for one: the
    # strict reading of releases that don't know --.
    while {[llength $words] > 0 && [string index [lindex $words 0] 0] eq "-"} {
        set word [lindex $words 0]
        set words [lrange $words 1 end]
        if {$word eq "-subtable"} {
            if {[llength $words] == 0} {
                error "-subtable needs a name"
            }
            set subtable [lindex $words 0]
            set words [lrange $words 1 end]
            set given 1
        } elseif {[string range $word 1 end] in [dict get $known $op]} {
            dict set flags [string range $word 1 end] 1
        } else {
            error "table $op: bad option \"$word\""
        }
    }
    if {$given && $subtable eq ""} {
        error "table $op: empty subtable name"
    }
    if {$op in {keys} || [dict get $flags all]} {
        if {!$given} {
            error "table $op: -subtable is needed"
        }
        if {[llength $words] != 0} {
            error "table $op: too many arguments"
        }
        return [list $subtable [whole_$op $subtable $flags]]
    }
    lassign [dict get {set {2 4} add {2 4} replace {2 4} lookup {1 1} incr {1 2} append {2 2} delete {1 1} timeout {1 2} lifetime {1 2}} $op] least most
    if {[llength $words] < $least || [llength $words] > $most} {
        error "wrong # args: table $op"
    }
    set words [lassign $words key]
    if {$given} {
        set where $subtable
    } else {
        # Entries outside subtables are each on the TMM of its own key.
        set where "\u0000$key"
    }
    return [list $where [do_$op $where $key $words $flags]]
}

proc table::whole_keys {name flags} {
    variable data
    if {[dict get $flags count]} {
        return [size $name]
    }
    purge $name
    if {![info exists data($name)]} {
        return {}
    }
    set keys [dict keys $data($name)]
    if {![dict get $flags notouch]} {
        set now [now]
        foreach k $keys {
            set entry [dict get $data($name) $k]
            lset entry 4 $now
            put $name $k $entry
        }
    }
    return $keys
}

# A delete tells no number.
proc table::whole_delete {name flags} {
    variable data
    variable soon
    unset -nocomplain data($name) soon($name)
    return ""
}

proc table::do_delete {name key words flags} {
    variable data
    if {[get $name $key] ne ""} {
        dict unset data($name) $key
    }
    return ""
}

# store writes a value with timers as given in words, 180 s and indefinite
# where they are not; 0 keeps what an entry has.
proc table::store {name key value words old notouch} {
    set now [now]
    set timeout 180
    set lifetime indefinite
    if {$old ne ""} {
        lassign $old - kept_timeout kept_lifetime created touched
        if {!$notouch} {
            set touched $now
        }
    } else {
        set kept_timeout 180
        set kept_lifetime indefinite
        set created $now
        set touched $now
    }
    if {[llength $words] > 0} {
        set timeout [timer [lindex $words 0] $kept_timeout]
    }
    if {[llength $words] > 1} {
        set lifetime [timer [lindex $words 1] $kept_lifetime]
    }
    put $name $key [list $value $timeout $lifetime $created $touched]
    return $value
}

proc table::do_set {name key words flags} {
    set words [lassign $words value]
    set old [get $name $key]
    if {[dict get $flags excl] && $old ne ""} {
        return [lindex $old 0]
    }
    if {[dict get $flags mustexist] && $old eq ""} {
        return ""
    }
    return [store $name $key $value $words $old [dict get $flags notouch]]
}

proc table::do_add {name key words flags} {
    set words [lassign $words value]
    set old [get $name $key]
    if {$old ne ""} {
        return [lindex $old 0]
    }
    return [store $name $key $value $words $old 0]
}

proc table::do_replace {name key words flags} {
    set words [lassign $words value]
    set old [get $name $key]
    if {$old eq ""} {
        return ""
    }
    return [store $name $key $value $words $old [dict get $flags notouch]]
}

proc table::do_lookup {name key words flags} {
    set entry [get $name $key]
    if {$entry eq ""} {
        return ""
    }
    if {![dict get $flags notouch]} {
        lset entry 4 [now]
        put $name $key $entry
    }
    return [lindex $entry 0]
}

# change puts a new value in an entry and keeps its timers.
proc table::change {name key value old flags} {
    if {$old eq ""} {
        set now [now]
        put $name $key [list $value 180 indefinite $now $now]
        return $value
    }
    lset old 0 $value
    if {![dict get $flags notouch]} {
        lset old 4 [now]
    }
    put $name $key $old
    return $value
}

proc table::do_incr {name key words flags} {
    set delta 1
    if {[llength $words] > 0} {
        set delta [lindex $words 0]
    }
    set old [get $name $key]
    if {$old eq "" && [dict get $flags mustexist]} {
        return ""
    }
    set value 0
    if {$old ne ""} {
        set value [lindex $old 0]
    }
    foreach n [list $value $delta] {
        if {![regexp {^-?[0-9]+$} $n]} {
            error "expected integer but got \"$n\""
        }
    }
    scan $value %lld value
    scan $delta %lld delta
    return [change $name $key [expr {$value + $delta}] $old $flags]
}

proc table::do_append {name key words flags} {
    set old [get $name $key]
    if {$old eq "" && [dict get $flags mustexist]} {
        return ""
    }
    set value [lindex $words 0]
    if {$old ne ""} {
        set value [lindex $old 0]$value
    }
    return [change $name $key $value $old $flags]
}

proc table::do_timeout {name key words flags} {
    return [do_timer 1 4 $name $key $words $flags]
}

proc table::do_lifetime {name key words flags} {
    return [do_timer 2 3 $name $key $words $flags]
}

# do_timer reads or sets the timer at one place of an entry, which runs from
# the time at another. Reading touches nothing.
proc table::do_timer {at from name key words flags} {
    set entry [get $name $key]
    if {$entry eq ""} {
        return -1
    }
    if {[llength $words] > 0} {
        lset entry $at [timer [lindex $words 0] [lindex $entry $at]]
        if {$at == 1} {
            lset entry 4 [now]
        }
        put $name $key $entry
        return [lindex $entry $at]
    }
    if {[dict get $flags remaining]} {
        return [left [lindex $entry $at] [lindex $entry $from]]
    }
    return [lindex $entry $at]
}
