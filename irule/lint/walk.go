package lint

import "strings"

// scope is where a command stands.
type scope struct {
	event string // of the when block; empty in a proc or outside
	proc  string // of the proc; empty elsewhere
	cond  bool   // only reached when a condition holds
	loop  bool   // repeated
	depth int
	// outer is the command whose word or expression this one is substituted
	// into; nil for a command of its own.
	outer *command
	// outerExpr is the whole expression that it stands in, if any.
	outerExpr string
}

// name tells variables of different blocks apart. Events of a connection
// share theirs, procs have their own.
func (s scope) name() string {
	if s.proc != "" {
		return "proc " + s.proc
	}
	return "connection"
}

// onRequest says that the block runs for every connection, request or packet.
func (s scope) onRequest() bool { return s.event != "" && s.event != "RULE_INIT" }

// visitor is called for each command, and for each expression.
type visitor struct {
	command func(cmd command, in scope, rest []command)
	expr    func(text string, pos int, in scope)
	problem func(err error)
}

// script walks the commands of a script. rest is what follows a command in
// the same block.
func (v *visitor) script(s string, base int, in scope) {
	if in.depth > maxDepth {
		v.problem(&syntaxError{base, "nested too deeply"})
		return
	}
	in.depth++
	cmds, err := parseScript(s, base)
	if err != nil {
		v.problem(err)
	}
	for i := range cmds {
		v.one(cmds[i], in, cmds[i+1:])
	}
}

// block walks a word that is a script, when it is one in braces.
func (v *visitor) block(w word, in scope) {
	if w.braced() {
		in.outer, in.outerExpr = nil, ""
		s, pos := w.inner()
		v.script(s, pos, in)
		return
	}
	v.substitutions(w, in, nil)
}

// substitutions walks the scripts that are substituted into a word.
func (v *visitor) substitutions(w word, in scope, outer *command) {
	if w.braced() {
		return
	}
	s, pos := w.inner()
	in.outer = outer
	for _, p := range parts(s, pos, false) {
		if p.script != "" {
			v.script(p.script, p.pos, in)
		}
	}
}

// condition walks a word that is an expression.
func (v *visitor) condition(w word, in scope, outer *command) {
	s, pos := w.inner()
	v.expr(s, pos, in)
	in.outer, in.outerExpr = outer, s
	for _, p := range parts(s, pos, true) {
		if p.script != "" {
			v.script(p.script, p.pos, in)
		}
	}
}

func (v *visitor) one(cmd command, in scope, rest []command) {
	v.command(cmd, in, rest)
	w := cmd.words
	last := len(w) - 1
	inner := in
	inner.outer, inner.outerExpr = nil, ""
	switch name := cmd.name(); {
	case name == "when" && last >= 2:
		v.block(w[last], scope{event: cmd.arg(0), depth: in.depth})
		return
	case name == "proc" && last == 3:
		v.block(w[3], scope{proc: cmd.arg(0), depth: in.depth})
		return
	case in.event == "" && in.proc == "" && (name == "ltm" && cmd.arg(0) == "rule" || name == "rule") && last >= 2:
		v.block(w[last], scope{depth: in.depth})
		return
	case name == "if":
		v.ifCommand(cmd, inner)
		return
	case name == "while" && last == 2:
		inner.loop = true
		v.condition(w[1], inner, &cmd)
		v.block(w[2], inner)
		return
	case name == "for" && last == 4:
		v.block(w[1], inner)
		inner.loop = true
		v.condition(w[2], inner, &cmd)
		v.block(w[3], inner)
		v.block(w[4], inner)
		return
	case name == "foreach" && last >= 3:
		for _, x := range w[1:last] {
			v.substitutions(x, in, &cmd)
		}
		inner.loop = true
		v.block(w[last], inner)
		return
	case name == "switch":
		v.switchCommand(cmd, in)
		return
	case name == "catch" && last >= 1:
		v.block(w[1], inner)
		return
	case name == "after" && last >= 2:
		inner.cond = true
		v.block(w[last], inner)
		return
	case name == "eval" && last == 1 && w[1].braced():
		v.block(w[1], inner)
		return
	case name == "expr":
		for _, x := range w[1:] {
			v.condition(x, in, &cmd)
		}
		return
	}
	for _, x := range w {
		v.substitutions(x, in, &cmd)
	}
}

func (v *visitor) ifCommand(cmd command, in scope) {
	w := cmd.words
	for i := 1; i < len(w); {
		v.condition(w[i], in, &cmd)
		i++
		inner := in
		inner.cond = true
		if i < len(w) && w[i].raw == "then" {
			i++
		}
		if i < len(w) {
			v.block(w[i], inner)
			i++
		}
		switch {
		case i < len(w) && w[i].raw == "elseif":
			i++
		case i < len(w) && w[i].raw == "else":
			if i+1 < len(w) {
				v.block(w[i+1], inner)
			}
			return
		case i < len(w): // else may be left out
			v.block(w[i], inner)
			return
		}
	}
}

func (v *visitor) switchCommand(cmd command, in scope) {
	w := cmd.words
	i := 1
	for i < len(w) && strings.HasPrefix(w[i].raw, "-") {
		i++
		if w[i-1].raw == "--" {
			break
		}
	}
	if i >= len(w) {
		return
	}
	v.substitutions(w[i], in, &cmd)
	inner := in
	inner.outer, inner.outerExpr, inner.cond = nil, "", true
	arms := w[i+1:]
	if len(arms) == 1 && arms[0].braced() {
		s, pos := arms[0].inner()
		list, err := parseList(s, pos)
		if err != nil {
			v.problem(err)
		}
		arms = list
	}
	for j := 1; j < len(arms); j += 2 {
		if arms[j].raw != "-" {
			v.block(arms[j], inner)
		}
	}
}
