# LOCALDB: per-TMM storage in a subtable that the TMM itself owns.
#
# A subtable lives on one TMM, chosen by a hash of its name that a rule can
# not compute. A write into a subtable of another TMM is a message and a wait,
# hundreds of times the cost of a write into one's own. Each TMM therefore
# looks for a name that it owns, by timing a write into candidate names, and
# keeps its entries there.
#
# A library of procs: it needs no virtual server. From any other rule, in
# events where the table command is valid:
#
#   call LOCALDB::set $key $value ?timeout? ?lifetime?   write
#   call LOCALDB::set_unique $key $value ?...?           write a key known to be new (saves a look)
#   call LOCALDB::set_many $lines $value ?...?           write one key per line: list of written, clicks
#   call LOCALDB::lookup $key                            value, or empty
#   call LOCALDB::keys / count / count_actual            keys; entries by counter, O(1); entries counted
#   call LOCALDB::delete $key                            1 when it was there, else 0
#   call LOCALDB::reset_entries                          empty the subtable, keep its name
#   call LOCALDB::delete_table $name                     empty any subtable, whoever owns it
#   call LOCALDB::probe $name                            clicks, entries, OWNER or NON_OWNER
#   call LOCALDB::whoami                                 name and counters
#   call LOCALDB::names / orphans / clear_orphans        names that hold entries of this TMM
#   call LOCALDB::note $name                             keep another name in that inventory
#   call LOCALDB::init                                   the name, searched for when there is none yet
#   call LOCALDB::should_log                             1 when the last write is one to be logged
#
# A state that other TMMs have to see does not belong here.
#
# Versions: 11.5 and later; procs need 11.4. On a standby unit the table
# command does nothing, so any name looks fast there: load the rule again on
# a unit that has become active. Statics outlive connections and end with the
# TMM or when the rule is loaded again, which starts a new search.
#
# Keys that start with - or = are stored with a = before them: the table
# command takes a leading - for an option, and releases differ in whether
# they know the -- that ends options.
#
# Braces are kept in pairs in comments and strings too, so that the rule can
# stand inside a configuration file.

when RULE_INIT {
    # Runs on every TMM whenever the rule is loaded. The table command is not
    # valid here, so the name is searched for at first use.
    set static::localdb_sample @SAMPLE@
    set static::localdb_threshold @THRESHOLD@
    # 0: as many as the number of TMMs needs
    set static::localdb_max_tries @MAX_TRIES@
    set static::localdb_candidates @CANDIDATES@
    # most names kept in the inventory, of all TMMs together
    set static::localdb_max_names 512
    set static::localdb_name ""
    set static::localdb_writes 0
    set static::localdb_entries 0
    set static::localdb_probes 0
    # What is percent-encoded in answers and log lines, so that a key can
    # neither end a line nor forge a field.
    set static::localdb_encoding [list]
    for {set static::localdb_i 0} {$static::localdb_i < 256} {incr static::localdb_i} {
        if {$static::localdb_i <= 32 or $static::localdb_i == 37 or $static::localdb_i >= 127} {
            lappend static::localdb_encoding [format %c $static::localdb_i] [format %%%02X $static::localdb_i]
        }
    }
}

# init returns this TMM's subtable name and finds one where there is none.
proc init {} {
    if {$static::localdb_name eq ""} {
        call LOCALDB::discover
    }
    return $static::localdb_name
}

# discover tries names until one is written fast, three times in a row. A
# write into a subtable of another TMM suspends this connection, and others
# on this TMM may search too meanwhile: the first to finish sets the name for
# all of them. A name that is met again may hold entries: they are counted
# before it is set, when nobody can be writing to it yet.
proc discover {} {
    set tmm [TMM::cmp_unit]
    set total [TMM::cmp_count]
    set limit $static::localdb_threshold
    set max $static::localdb_max_tries
    if {$max == 0} {
        # With 25 tries per TMM, one that finds none is less likely than 1 in
        # 10^9: (1-1/N)^(25N) is about e^-25.
        set max [expr {25 * $total}]
        if {$max < 200} {
            set max 200
        }
    }
    set tries 0
    set found 0
    while {$found == 0 and $tries < $max} {
        incr tries
        set name "localdb_tmm_${tmm}_[expr {int(rand() * $static::localdb_candidates)}]"
        set diff [call LOCALDB::timed_probe $name]
        if {$diff < $limit} {
            # A single lucky sample must not win.
            if {[call LOCALDB::timed_probe $name] < $limit} {
                if {[call LOCALDB::timed_probe $name] < $limit} {
                    set found 1
                }
            }
        }
        table delete -subtable $name localdb_probe
        if {$static::localdb_name ne ""} {
            return $static::localdb_name
        }
    }
    set held [table keys -subtable $name -notouch]
    if {$static::localdb_name ne ""} {
        return $static::localdb_name
    }
    set static::localdb_name $name
    set static::localdb_writes 0
    set static::localdb_entries [llength $held]
    if {[lsearch -exact $held localdb_probe] >= 0} {
        # of another search that is still under way
        incr static::localdb_entries -1
    }
    if {$found} {
        log local0. "tmm=$tmm subtable=$name initialized after $tries probes (diff=$diff clicks of $total total TMMs)"
    } else {
        log local0.warning "tmm=$tmm WARNING could not find local subtable after $tries probes; using $name (last diff=$diff)"
    }
    call LOCALDB::record
    return $static::localdb_name
}

# timed_probe writes one short-lived entry into a subtable and returns the
# clicks that it took.
proc timed_probe {name} {
    set start [clock clicks]
    table set -subtable $name localdb_probe 1 5 5
    return [expr {[clock clicks] - $start}]
}

# record notes this TMM's name in the inventory, which outlives the rule: the
# names in it are how entries are found again after a reload. It is one small
# subtable for all TMMs, written when a name is found and now and then later,
# because an idle entry goes after 30 days.
proc record {} {
    if {[call LOCALDB::note $static::localdb_name]} {
        table set -subtable localdb_inventory "current:[TMM::cmp_unit]" $static::localdb_name 2592000 indefinite
    }
}

# note puts a subtable's name into the inventory, under this TMM: 1, or 0
# when there is no room.
proc note {name} {
    set tmm [TMM::cmp_unit]
    if {[table keys -subtable localdb_inventory -count] >= $static::localdb_max_names} {
        # Names whose entries have all gone make room.
        foreach old [call LOCALDB::recorded $tmm] {
            if {$old ne $static::localdb_name and [table keys -subtable $old -count] == 0} {
                table delete -subtable localdb_inventory "$tmm:$old"
            }
        }
        if {[table keys -subtable localdb_inventory -count] >= $static::localdb_max_names} {
            log local0.warning "tmm=$tmm WARNING inventory is full ($static::localdb_max_names names); [string range [call LOCALDB::encode $name] 0 255] is not in it"
            return 0
        }
    }
    table set -subtable localdb_inventory "$tmm:$name" 1 2592000 indefinite
    return 1
}

# recorded lists the names that the inventory holds for a TMM.
proc recorded {tmm} {
    set names [list]
    set prefix "$tmm:"
    foreach k [table keys -subtable localdb_inventory -notouch] {
        if {$k starts_with $prefix} {
            lappend names [string range $k [string length $prefix] end]
        }
    }
    return $names
}

# names lists the subtables known to hold entries of this TMM: its present
# one, which a reload would leave behind, those that earlier reloads left, and
# those noted by somebody.
proc names {} {
    set names [list]
    if {$static::localdb_name ne ""} {
        call LOCALDB::record
    }
    foreach name [call LOCALDB::recorded [TMM::cmp_unit]] {
        if {[table keys -subtable $name -count] > 0} {
            lappend names $name
        }
    }
    return $names
}

# orphans lists the subtables that earlier reloads left behind.
proc orphans {} {
    set orphans [list]
    set prefix "localdb_tmm_[TMM::cmp_unit]_"
    foreach name [call LOCALDB::names] {
        if {$name starts_with $prefix and $name ne $static::localdb_name} {
            lappend orphans $name
        }
    }
    return $orphans
}

# clear_orphans deletes their entries and returns how many there were.
proc clear_orphans {} {
    set deleted 0
    foreach name [call LOCALDB::orphans] {
        incr deleted [call LOCALDB::delete_table $name]
    }
    return $deleted
}

# set writes an entry. The idle timeout is 3600 s and the lifetime indefinite
# unless given. Returns the clicks that the write took.
proc set {key value {timeout 3600} {lifetime indefinite}} {
    if {$static::localdb_name eq ""} {
        call LOCALDB::discover
    }
    set name $static::localdb_name
    if {$key starts_with "-" or $key starts_with "="} {
        set stored "=$key"
    } else {
        set stored $key
    }
    # Reading a timer touches nothing: this is the look that keeps the counter.
    set before [table timeout -subtable $name $stored]
    set start [clock clicks]
    table set -subtable $name $stored $value $timeout $lifetime
    set diff [expr {[clock clicks] - $start}]
    if {$before eq "-1" or $before eq ""} {
        incr static::localdb_entries
    }
    incr static::localdb_writes
    if {$static::localdb_sample > 0 and $static::localdb_writes % $static::localdb_sample == 0} {
        call LOCALDB::log_sample $name $key $diff sampled
    }
    if {$static::localdb_writes % 65536 == 0} {
        call LOCALDB::record
    }
    return $diff
}

# set_unique writes an entry whose key the caller knows to be new, a UUID for
# instance. A key that was there after all is counted twice.
proc set_unique {key value {timeout 3600} {lifetime indefinite}} {
    if {$static::localdb_name eq ""} {
        call LOCALDB::discover
    }
    set name $static::localdb_name
    if {$key starts_with "-" or $key starts_with "="} {
        set stored "=$key"
    } else {
        set stored $key
    }
    set start [clock clicks]
    table set -subtable $name $stored $value $timeout $lifetime
    set diff [expr {[clock clicks] - $start}]
    incr static::localdb_entries
    incr static::localdb_writes
    if {$static::localdb_sample > 0 and $static::localdb_writes % $static::localdb_sample == 0} {
        call LOCALDB::log_sample $name $key $diff "unique, sampled"
    }
    if {$static::localdb_writes % 65536 == 0} {
        call LOCALDB::record
    }
    return $diff
}

# set_many writes one entry per line; blank lines are skipped and a carriage
# return at the end of a line is dropped. Returns how many were written and
# the clicks of the writes alone.
proc set_many {lines value {timeout 3600} {lifetime indefinite}} {
    if {$static::localdb_name eq ""} {
        call LOCALDB::discover
    }
    set written 0
    set elapsed 0
    foreach line [split $lines "\n"] {
        if {$line ends_with "\r"} {
            set line [string range $line 0 [expr {[string length $line] - 2}]]
        }
        if {$line eq ""} {
            continue
        }
        incr elapsed [call LOCALDB::set $line $value $timeout $lifetime]
        incr written
    }
    return [list $written $elapsed]
}

# lookup returns the value of a key, or nothing, and restarts its idle timer.
proc lookup {key} {
    return [table lookup -subtable [call LOCALDB::init] [call LOCALDB::escape $key]]
}

# keys lists the keys and restarts no timer. It grows with the subtable: not
# for a request path.
proc keys {} {
    set keys [list]
    foreach k [table keys -subtable [call LOCALDB::init] -notouch] {
        lappend keys [call LOCALDB::unescape $k]
    }
    return $keys
}

# count is the number of entries by a counter, O(1): exact while nothing
# expires and nobody else deletes, an upper bound otherwise.
proc count {} {
    return $static::localdb_entries
}

# count_actual counts the entries and puts the counter right. It grows with
# the subtable: not for a request path.
proc count_actual {} {
    set name [call LOCALDB::init]
    set writes $static::localdb_writes
    set n [table keys -subtable $name -count]
    if {$writes == $static::localdb_writes and $name eq $static::localdb_name} {
        set static::localdb_entries $n
    }
    return $n
}

# delete removes an entry: 1 when it was there, else 0.
proc delete {key} {
    set name [call LOCALDB::init]
    set stored [call LOCALDB::escape $key]
    set before [table timeout -subtable $name $stored]
    if {$before eq "-1" or $before eq ""} {
        return 0
    }
    table delete -subtable $name $stored
    if {$static::localdb_entries > 0} {
        incr static::localdb_entries -1
    }
    return 1
}

# reset_entries deletes the entries of this TMM's subtable, keeps its name and
# zeroes the counters. Returns how many there were.
proc reset_entries {} {
    set name $static::localdb_name
    if {$name eq ""} {
        return 0
    }
    set n [table keys -subtable $name -count]
    table delete -subtable $name -all
    set static::localdb_writes 0
    set static::localdb_entries 0
    return $n
}

# delete_table deletes the entries of any subtable, whoever owns it, and
# takes its name out of the inventory unless some TMM is still using it.
# Returns how many entries there were.
proc delete_table {name} {
    if {$name eq $static::localdb_name} {
        return [call LOCALDB::reset_entries]
    }
    set n [table keys -subtable $name -count]
    table delete -subtable $name -all
    foreach k [table keys -subtable localdb_inventory -notouch] {
        set at [string first ":" $k]
        if {$k starts_with "current:" or [string range $k [expr {$at + 1}] end] ne $name} {
            continue
        }
        set tmm [string range $k 0 [expr {$at - 1}]]
        if {[table lookup -notouch -subtable localdb_inventory "current:$tmm"] ne $name} {
            table delete -subtable localdb_inventory $k
        }
    }
    return $n
}

# probe writes the entry probe_<tmm> into any subtable, to learn whether this
# TMM owns it. Returns clicks, entries of the subtable, and the tag. One probe
# in as many as the sampled writes is logged.
proc probe {name} {
    set tmm [TMM::cmp_unit]
    set start [clock clicks]
    table set -subtable $name "probe_$tmm" $tmm 60 indefinite
    set diff [expr {[clock clicks] - $start}]
    set entries [table keys -subtable $name -count]
    if {$diff < $static::localdb_threshold} {
        set tag OWNER
    } else {
        set tag NON_OWNER
    }
    incr static::localdb_probes
    if {$static::localdb_sample > 0 and $static::localdb_probes % $static::localdb_sample == 0} {
        log local0. "PROBE tmm=$tmm subtable=[string range [call LOCALDB::encode $name] 0 511] clicks=$diff entries=$entries $tag"
    }
    return [list $diff $entries $tag]
}

# whoami tells this TMM's number, its subtable and its counters, as a flat
# list of pairs.
proc whoami {} {
    set name [call LOCALDB::init]
    return "tmm [TMM::cmp_unit] subtable $name total_tmms [TMM::cmp_count] writes $static::localdb_writes entries $static::localdb_entries"
}

# should_log is 1 when the last write is one to be logged, for rules that
# write a line of their own beside it.
proc should_log {} {
    if {$static::localdb_sample > 0 and $static::localdb_writes > 0} {
        return [expr {$static::localdb_writes % $static::localdb_sample == 0}]
    }
    return 0
}

# log_sample logs one timed write. Lines are cut at 1,024 bytes on their way,
# and the clicks come after the key: a long key is cut here instead.
proc log_sample {name key diff how} {
    if {$diff < $static::localdb_threshold} {
        set tag FAST_LOCAL
    } else {
        set tag SLOW
    }
    set shown [string range [call LOCALDB::encode $key] 0 511]
    log local0. "tmm=[TMM::cmp_unit] subtable=$name writes=$static::localdb_writes key=$shown clicks=$diff $tag ($how 1/$static::localdb_sample)"
}

# encode percent-encodes what could end a line or a field. Most texts hold
# nothing of it, and a map of that many pairs is slow.
proc encode {text} {
    if {not [regexp {[^!-$&-~]} $text]} {
        return $text
    }
    return [string map $static::localdb_encoding $text]
}

# escape and unescape turn a key into what is stored, and back.
proc escape {key} {
    if {$key starts_with "-" or $key starts_with "="} {
        return "=$key"
    }
    return $key
}

proc unescape {stored} {
    if {$stored starts_with "="} {
        return [string range $stored 1 end]
    }
    return $stored
}
