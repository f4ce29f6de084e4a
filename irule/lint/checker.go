package lint

import (
	"errors"
	"regexp"
	"sort"
	"strings"
	"sync"
)

// checker is one run over one source: a first walk notes what variables are
// set to, a second one looks for mistakes.
type checker struct {
	file, src string
	found     []Finding
	rules     map[string]Rule
	// assigned is what is known to be put into each variable, by scope.
	assigned map[string][]word
	// lookups are the table lookups of each event, by their text.
	lookups map[string]bool
	// compared are the variables that stand beside < or > somewhere.
	compared map[string]bool
	// lifetimes says that some lifetime is set somewhere.
	lifetimes bool
	// untimed are the places that are written without an idle timeout, where a
	// touch does nothing.
	untimed map[string]bool
	starts  []int            // where each line starts
	allowed map[int][]string // rules that a line allows to break
}

var allowRE = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`#\s*lint:allow\s+([a-z0-9-]+(?:[ \t,]+[a-z0-9-]+)*)`)
})

func (c *checker) run() {
	c.rules = make(map[string]Rule)
	for _, r := range Rules() {
		c.rules[r.ID] = r
	}
	c.assigned = make(map[string][]word)
	c.lookups = make(map[string]bool)
	c.compared = make(map[string]bool)
	c.untimed = make(map[string]bool)
	c.allowed = make(map[int][]string)
	at := 0
	for i, line := range strings.Split(c.src, "\n") {
		c.starts = append(c.starts, at)
		at += len(line) + 1
		if m := allowRE().FindStringSubmatch(line); m != nil {
			ids := strings.FieldsFunc(m[1], func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
			c.allowed[i+1] = append(c.allowed[i+1], ids...)
			if strings.HasPrefix(strings.TrimSpace(line), "#") { // alone: about the next line
				c.allowed[i+2] = append(c.allowed[i+2], ids...)
			}
		}
	}
	nothing := func(error) {}
	first := visitor{command: c.note, expr: c.noteExpr, problem: nothing}
	first.script(c.src, 0, scope{})
	second := visitor{command: c.command, expr: c.expression, problem: c.syntax}
	second.script(c.src, 0, scope{})
}

// report adds a finding of the rule unless the line allows it.
func (c *checker) report(id string, pos int, message string) {
	pos = min(max(pos, 0), len(c.src))
	line := sort.SearchInts(c.starts, pos+1) // the number of lines that start at or before pos
	for _, a := range c.allowed[line] {
		if a == id {
			return
		}
	}
	r := c.rules[id]
	c.found = append(c.found, Finding{
		File: c.file, Line: line, Column: pos - c.starts[line-1] + 1,
		Rule: id, Severity: r.Severity, Message: message, Cost: r.Cost, Instead: r.Instead,
	})
}

func (c *checker) syntax(err error) {
	var se *syntaxError
	if errors.As(err, &se) {
		c.report("syntax", se.pos, se.msg)
		return
	}
	c.report("syntax", 0, err.Error())
}

// key is how a variable is known: statics are the same everywhere.
func key(name string, in scope) string {
	if strings.HasPrefix(name, "static::") {
		return name
	}
	return in.name() + " " + name
}

// note is the first walk.
func (c *checker) note(cmd command, in scope, _ []command) {
	switch cmd.name() {
	case "set", "append", "lappend":
		if name := cmd.arg(0); name != "" {
			for _, w := range cmd.words[min(2, len(cmd.words)):] {
				c.assigned[key(name, in)] = append(c.assigned[key(name, in)], w)
			}
		}
	case "foreach":
		// The variable holds what the list does.
		if len(cmd.words) >= 3 {
			c.assigned[key(cmd.arg(0), in)] = append(c.assigned[key(cmd.arg(0), in)], cmd.words[2])
		}
	case "table":
		t := parseTable(cmd)
		if t.op == "lifetime" || len(t.args) >= 4 {
			c.lifetimes = true
		}
		if len(t.args) >= 3 {
			if timeout, ok := t.args[2].literal(); ok && strings.HasPrefix(timeout, "indef") {
				c.untimed[t.where()] = true
			}
		}
	}
}

func (c *checker) noteExpr(text string, _ int, in scope) {
	ts := tokens(text)
	for i, t := range ts {
		if t.operand || !strings.ContainsAny(t.text, "<>") {
			continue
		}
		for _, j := range []int{i - 1, i + 1} {
			if j >= 0 && j < len(ts) && strings.HasPrefix(ts[j].text, "$") {
				name, _ := variableAt(ts[j].text, 0)
				c.compared[key(name, in)] = true
			}
		}
	}
}

// inputCommands give what a client sends.
var inputCommands = map[string]bool{
	"HTTP::uri": true, "HTTP::path": true, "HTTP::query": true, "HTTP::header": true, "HTTP::host": true, "HTTP::payload": true,
	"HTTP::cookie": true, "HTTP::username": true, "HTTP::password": true, "HTTP::request": true, "URI::query": true, "URI::decode": true,
	"URI::path": true, "URI::basename": true, "TCP::payload": true, "UDP::payload": true, "DNS::question": true, "SIP::header": true,
}

// input says whether a word may carry text that a client chose, as it is: a
// command that gives it, or a variable set from one. What went through any
// other command (an encoding, a comparison) is taken to be harmless.
func (c *checker) input(w word, in scope) bool { return c.inputSeen(w, in, make(map[string]bool)) }

// inputSeen leaves out the variables that were followed already.
func (c *checker) inputSeen(w word, in scope, seen map[string]bool) bool {
	if w.braced() {
		return false
	}
	s, pos := w.inner()
	for _, p := range parts(s, pos, false) {
		if p.variable != "" {
			k := key(p.variable, in)
			if seen[k] {
				continue
			}
			seen[k] = true
			for _, v := range c.assigned[k] {
				if c.inputSeen(v, in, seen) {
					return true
				}
			}
			continue
		}
		cmds, err := parseScript(p.script, p.pos)
		if err != nil || len(cmds) != 1 {
			continue
		}
		if name := cmds[0].name(); inputCommands[name] && !(name == "HTTP::header" && (cmds[0].arg(0) == "exists" || cmds[0].arg(0) == "names" || cmds[0].arg(0) == "count")) {
			return true
		}
	}
	return false
}

// from says whether a word is one command substitution of a command for which
// is holds, or a variable set from one.
func (c *checker) from(w word, in scope, is func(command) bool) bool {
	if script, pos, ok := w.substitution(); ok {
		cmds, err := parseScript(script, pos)
		return err == nil && len(cmds) == 1 && is(cmds[0])
	}
	if name, ok := w.variable(); ok {
		for _, v := range c.assigned[key(name, in)] {
			if script, pos, ok := v.substitution(); ok {
				cmds, err := parseScript(script, pos)
				if err == nil && len(cmds) == 1 && is(cmds[0]) {
					return true
				}
			}
		}
	}
	return false
}

// tableCommand is a table command taken apart.
type tableCommand struct {
	op       string
	flags    map[string]bool
	bad      []word // options that the command doesn't have
	subtable *word
	args     []word // key first
}

// tableOptions are the options of each subcommand.
var tableOptions = map[string][]string{
	"set":      {"-notouch", "-mustexist", "-excl"},
	"add":      {"-notouch"},
	"replace":  {"-notouch"},
	"lookup":   {"-notouch"},
	"incr":     {"-notouch", "-mustexist"},
	"append":   {"-notouch", "-mustexist"},
	"delete":   {"-all"},
	"timeout":  {"-remaining"},
	"lifetime": {"-remaining"},
	"keys":     {"-notouch", "-count"},
}

func parseTable(cmd command) tableCommand {
	t := tableCommand{op: cmd.arg(0), flags: make(map[string]bool)}
	w := cmd.words[min(2, len(cmd.words)):]
	for len(w) > 0 && strings.HasPrefix(w[0].raw, "-") {
		opt := w[0]
		w = w[1:]
		switch {
		case opt.raw == "--":
			t.args = w
			return t
		case opt.raw == "-subtable" && len(w) > 0:
			t.subtable = &w[0]
			w = w[1:]
			continue
		case opt.raw == "-georedundancy":
			continue
		}
		known := false
		for _, o := range tableOptions[t.op] {
			known = known || o == opt.raw
		}
		if !known {
			t.bad = append(t.bad, opt)
		}
		t.flags[opt.raw] = true
	}
	t.args = w
	return t
}

// writes says that the subcommand may create or change an entry.
func (t tableCommand) writes() bool {
	switch t.op {
	case "set", "add", "replace", "incr", "append":
		return true
	}
	return false
}

// where is the subtable as written, without quotes, or, where there is none,
// the key.
func (t tableCommand) where() string {
	switch {
	case t.subtable != nil:
		s, _ := t.subtable.inner()
		return "subtable " + s
	case len(t.args) > 0:
		s, _ := t.args[0].inner()
		return "key " + s
	}
	return ""
}

func isTable(op string, without ...string) func(command) bool {
	return func(cmd command) bool {
		if cmd.name() != "table" || cmd.arg(0) != op {
			return false
		}
		t := parseTable(cmd)
		for _, f := range without {
			if t.flags[f] {
				return false
			}
		}
		return true
	}
}
