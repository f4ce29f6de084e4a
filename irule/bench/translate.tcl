# Rules are Tcl with operators of their own in expressions: starts_with,
# ends_with, contains, equals, matches_glob, matches_regex, and, or, not.
# translate::script rewrites a rule's source into plain Tcl 8.6, word by word,
# and changes nothing else.

namespace eval translate {
    variable word_ops {starts_with ends_with contains matches_glob matches_regex matches}
}

# brace, bracket and quote return the index of the character that closes the
# one at index at.
proc translate::brace {s at} {
    set depth 0
    set n [string length $s]
    for {set i $at} {$i < $n} {incr i} {
        switch -exact -- [string index $s $i] {
            "\\" { incr i }
            "\{" { incr depth }
            "\}" {
                incr depth -1
                if {$depth == 0} {
                    return $i
                }
            }
        }
    }
    error "missing close brace"
}

proc translate::bracket {s at} {
    set n [string length $s]
    for {set i [expr {$at + 1}]} {$i < $n} {incr i} {
        switch -exact -- [string index $s $i] {
            "\\" { incr i }
            "\{" { set i [brace $s $i] }
            "\[" { set i [bracket $s $i] }
            "\"" {
                # A quote opens a word only where a word begins.
                if {[string is space [string index $s $i-1]] || [string index $s $i-1] in [list "\[" "(" ";"]} {
                    set i [quote $s $i]
                }
            }
            "\]" { return $i }
        }
    }
    error "missing close bracket"
}

proc translate::quote {s at} {
    set n [string length $s]
    for {set i [expr {$at + 1}]} {$i < $n} {incr i} {
        switch -exact -- [string index $s $i] {
            "\\" { incr i }
            "\[" { set i [bracket $s $i] }
            "\"" { return $i }
        }
    }
    error "missing close quote"
}

# script translates a script.
proc translate::script {s} {
    set out ""
    set n [string length $s]
    set i 0
    while {$i < $n} {
        set c [string index $s $i]
        if {[string is space $c] || $c eq ";"} {
            append out $c
            incr i
            continue
        }
        if {$c eq "#"} {
            set end $i
            while {$end < $n && [string index $s $end] ne "\n"} {
                if {[string index $s $end] eq "\\"} {
                    incr end
                }
                incr end
            }
            append out [string range $s $i [expr {$end - 1}]]
            set i $end
            continue
        }
        # One command: its words and the blanks before each.
        set words {}
        set gaps {}
        set gap ""
        while {$i < $n} {
            set c [string index $s $i]
            if {$c eq "\n" || $c eq ";"} {
                break
            }
            if {[string is space $c]} {
                append gap $c
                incr i
                continue
            }
            if {$c eq "\\" && [string index $s $i+1] eq "\n"} {
                append gap "\\\n"
                incr i 2
                continue
            }
            set end [word $s $i]
            lappend words [string range $s $i $end]
            lappend gaps $gap
            set gap ""
            set i [expr {$end + 1}]
        }
        foreach g $gaps w [command $words] {
            append out $g $w
        }
        append out $gap
    }
    return $out
}

# word returns the index of the last character of the word at i.
proc translate::word {s i} {
    set c [string index $s $i]
    if {$c eq "\{"} {
        return [brace $s $i]
    }
    if {$c eq "\""} {
        return [quote $s $i]
    }
    set n [string length $s]
    for {} {$i < $n} {incr i} {
        set c [string index $s $i]
        if {$c eq "\\"} {
            if {[string index $s $i+1] eq "\n"} {
                return [expr {$i - 1}]
            }
            incr i
        } elseif {$c eq "\["} {
            set i [bracket $s $i]
        } elseif {$c eq "$" && [string index $s $i+1] eq "\{"} {
            set i [brace $s [expr {$i + 1}]]
        } elseif {[string is space $c] || $c eq ";"} {
            return [expr {$i - 1}]
        }
    }
    return [expr {$n - 1}]
}

# command translates the words of one command, each in its role.
proc translate::command {words} {
    set out {}
    set last [expr {[llength $words] - 1}]
    set name [lindex $words 0]
    set i 0
    set role ""
    foreach w $words {
        set role text
        switch -exact -- $name {
            if {
                if {$i == 1 || [lindex $words $i-1] eq "elseif"} {
                    set role expr
                } elseif {$w ni {if then else elseif}} {
                    set role script
                }
            }
            while { set role [lindex {text expr script} $i] }
            for { set role [lindex {text script expr script script} $i] }
            expr { set role expr }
            foreach - when - proc - after - eval { if {$i == $last && $i > 0} { set role script } }
            catch { if {$i == 1} { set role script } }
            switch { if {$i == $last} { set role cases } }
        }
        if {[string index $w 0] eq "\{" && $role ne "text"} {
            set inner [string range $w 1 end-1]
            switch -exact -- $role {
                expr { set w "\{[expression $inner]\}" }
                script { set w "\{[script $inner]\}" }
                cases { set w "\{[cases $inner]\}" }
            }
        } elseif {[string index $w 0] ne "\{"} {
            set w [nested $w]
        }
        lappend out $w
        incr i
    }
    return $out
}

# cases translates the bodies of a switch.
proc translate::cases {s} {
    set out ""
    set n [string length $s]
    set i 0
    set body 0
    while {$i < $n} {
        set c [string index $s $i]
        if {[string is space $c]} {
            append out $c
            incr i
            continue
        }
        set end [word $s $i]
        set w [string range $s $i $end]
        if {$body && [string index $w 0] eq "\{"} {
            set w "\{[script [string range $w 1 end-1]]\}"
        }
        append out $w
        set body [expr {!$body}]
        set i [expr {$end + 1}]
    }
    return $out
}

# nested translates the command substitutions in a bare or quoted word.
proc translate::nested {s} {
    if {[string first "\[" $s] < 0} {
        return $s
    }
    set out ""
    set n [string length $s]
    for {set i 0} {$i < $n} {incr i} {
        set c [string index $s $i]
        if {$c eq "\\"} {
            append out [string range $s $i $i+1]
            incr i
        } elseif {$c eq "\["} {
            set end [bracket $s $i]
            append out "\[[script [string range $s [expr {$i + 1}] [expr {$end - 1}]]]\]"
            set i $end
        } else {
            append out $c
        }
    }
    return $out
}

# expression translates an expression: operands are taken whole, the word
# operators become functions or plain operators.
proc translate::expression {s} {
    variable word_ops
    set tokens {}
    set n [string length $s]
    set i 0
    while {$i < $n} {
        set c [string index $s $i]
        if {[string is space $c]} {
            incr i
            continue
        }
        set end $i
        switch -exact -- $c {
            "\[" { set end [bracket $s $i] }
            "\"" { set end [quote $s $i] }
            "\{" { set end [brace $s $i] }
            "(" { set end [paren $s $i] }
            "$" {
                if {[string index $s $i+1] eq "\{"} {
                    set end [brace $s [expr {$i + 1}]]
                } else {
                    regexp -indices -start [expr {$i + 1}] {\A[A-Za-z0-9_:]+} $s at
                    set end [lindex $at 1]
                    if {[string index $s $end+1] eq "("} {
                        set end [paren $s [expr {$end + 1}]]
                    }
                }
            }
            default {
                if {[regexp -indices -start $i {\A([A-Za-z_][A-Za-z0-9_:]*|[0-9][0-9A-Za-z.]*)} $s at]} {
                    set end [lindex $at 1]
                } elseif {[regexp -indices -start $i {\A(&&|\|\||==|!=|<=|>=|<<|>>)} $s at]} {
                    set end [lindex $at 1]
                }
            }
        }
        set token [string range $s $i $end]
        set i [expr {$end + 1}]
        if {[string index $token 0] eq "("} {
            set inner "([expression [string range $token 1 end-1]])"
            # A name before it makes it a call.
            set before [lindex $tokens end]
            if {[regexp {^[a-z][a-z0-9_]*$} $before] && $before ni [concat $word_ops {and or not eq ne equals in ni}]} {
                lset tokens end "$before$inner"
            } else {
                lappend tokens $inner
            }
            continue
        }
        if {[string index $token 0] in [list "\[" "\""]} {
            set token [nested $token]
        }
        lappend tokens $token
    }
    # A comparison binds tighter than and, or: its two sides are the tokens
    # beside it.
    set out {}
    for {set i 0} {$i < [llength $tokens]} {incr i} {
        set token [lindex $tokens $i]
        if {$token in $word_ops} {
            set left [lindex $out end]
            set right [lindex $tokens [incr i]]
            set out [lrange $out 0 end-1]
            lappend out "rule_${token}($left,$right)"
            continue
        }
        switch -exact -- $token {
            and { set token "&&" }
            or { set token "||" }
            not { set token "!" }
            equals { set token "eq" }
        }
        lappend out $token
    }
    return [join $out " "]
}

# paren returns the index of the parenthesis that closes the one at index at.
proc translate::paren {s at} {
    set depth 0
    set n [string length $s]
    for {set i $at} {$i < $n} {incr i} {
        switch -exact -- [string index $s $i] {
            "\\" { incr i }
            "\[" { set i [bracket $s $i] }
            "\"" { set i [quote $s $i] }
            "\{" { set i [brace $s $i] }
            "(" { incr depth }
            ")" {
                incr depth -1
                if {$depth == 0} {
                    return $i
                }
            }
        }
    }
    error "missing close parenthesis"
}
