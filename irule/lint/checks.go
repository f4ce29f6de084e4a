package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// tcl85Commands came after 8.4.
var tcl85Commands = []string{"dict", "lassign", "lrepeat", "lreverse", "apply", "try", "throw", "lmap", "tailcall", "coroutine", "yield", "chan", "zlib"}

// deniedCommands are Tcl's, and not for rules.
var deniedCommands = []string{
	"cd", "eof", "encoding", "exec", "exit", "fblocked", "fconfigure", "fcopy", "file", "fileevent", "flush", "gets", "glob",
	"interp", "load", "namespace", "open", "package", "pid", "puts", "pwd", "rename", "seek", "socket", "source", "tell", "time",
	"unknown", "update", "vwait", "http", "memory",
}

// knownEvents are the events, or, where one ends in _, what the events of a
// family start with.
var knownEvents = []string{
	"RULE_INIT", "CLIENT_ACCEPTED", "CLIENT_CLOSED", "CLIENT_DATA", "SERVER_CLOSED", "SERVER_CONNECTED", "SERVER_DATA", "SERVER_INIT",
	"HTTP_CLASS_FAILED", "HTTP_CLASS_SELECTED", "HTTP_DISABLED", "HTTP_PROXY_CONNECT", "HTTP_PROXY_REQUEST", "HTTP_PROXY_RESPONSE",
	"HTTP_REJECT", "HTTP_REQUEST", "HTTP_REQUEST_DATA", "HTTP_REQUEST_RELEASE", "HTTP_REQUEST_SEND", "HTTP_RESPONSE",
	"HTTP_RESPONSE_CONTINUE", "HTTP_RESPONSE_DATA", "HTTP_RESPONSE_RELEASE", "LB_FAILED", "LB_QUEUED", "LB_SELECTED",
	"CLIENTSSL_", "SERVERSSL_", "HTTP2_", "DNS_", "SIP_", "ACCESS_", "ASM_", "AUTH_",
	"CACHE_", "CATEGORY_", "CLASSIFICATION_", "DIAMETER_", "ECA_", "FIX_", "FLOW_INIT", "GENERICMESSAGE_", "GTP_", "HTML_", "ICAP_",
	"IN_DOSL7_ATTACK", "BOTDEFENSE_", "ANTIFRAUD_", "IVS_ENTRY_", "L7CHECK_", "MQTT_", "MR_", "NAME_RESOLVED", "PCP_", "PEM_", "PERSIST_DOWN",
	"PROTOCOL_INSPECTION_", "QOE_", "RADIUS_", "REWRITE_", "RTSP_", "SA_PICKED", "SOCKS_", "STREAM_MATCHED", "TAP_", "TDS_",
	"USER_REQUEST", "USER_RESPONSE", "WS_", "XML_", "CONNECTOR_", "ADAPT_", "AVR_", "EPI_", "JSON_", "SSE_",
}

// Compiled when first needed: most runs of a program that can check rules
// check none.
var (
	blockRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(block|(^|[^a-z])ban(ned|s|list)?([^a-z]|$)|black|deny|denied|jail|quarantine|lockout|penalt)`)
	})
	literalRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\^?[A-Za-z0-9 /_:=,;@%&#~-]+\$?$`)
	})
	numberRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-+]?[0-9.]+$`) })
)

// command is the second walk: every check that looks at one command.
func (c *checker) command(cmd command, in scope, rest []command) {
	name := cmd.name()
	for _, w := range cmd.words {
		if strings.HasPrefix(w.raw, "{*}") && len(w.raw) > 3 {
			c.report("tcl85", w.pos, "{*} is not in Tcl 8.4")
		}
		if !w.braced() {
			c.globals(w)
		}
	}
	switch {
	case slices.Contains(tcl85Commands, name) && (in.event != "" || in.proc != ""):
		c.report("tcl85", cmd.pos(), name+" is not in Tcl 8.4")
	case name == "string" && cmd.arg(0) == "reverse":
		c.report("tcl85", cmd.pos(), "string reverse is not in Tcl 8.4")
	case slices.Contains(deniedCommands, name) && (in.event != "" || in.proc != ""):
		c.report("denied-command", cmd.pos(), name+" is denied to rules")
	}
	switch name {
	case "when":
		c.event(cmd)
	case "table":
		c.table(cmd, in)
	case "set", "append", "lappend", "incr", "global", "unset":
		c.variable(cmd, in)
	case "llength":
		c.llength(cmd, in)
	case "lsearch", "foreach":
		c.scan(cmd, in)
	case "log":
		c.log(cmd, in)
	case "expr", "if", "while", "for":
		c.unbraced(cmd, in)
		if name == "if" {
			c.lookupThenSet(cmd, in)
		}
	case "eval", "subst":
		for _, w := range cmd.words[1:] {
			if c.input(w, in) {
				c.report("eval-input", w.pos, name+" runs what a client sent")
			}
		}
	case "regexp":
		c.regexp(cmd)
	case "HTTP::collect":
		c.collect(cmd, in)
	case "session":
		if op := cmd.arg(0); op == "add" || op == "lookup" || op == "delete" {
			c.report("session-command", cmd.pos(), "session "+op)
		}
	case "HTTP::respond", "HTTP::redirect", "reject", "drop":
		c.answered(cmd, in, rest)
	}
}

// globals finds $::x in a word; $::ns::x is a namespace's.
func (c *checker) globals(w word) {
	s, pos := w.inner()
	for _, p := range parts(s, pos, false) {
		if isGlobal(p.variable) {
			c.report("global-variable", p.pos, "$"+p.variable+" is global")
		}
	}
}

func isGlobal(name string) bool {
	return strings.HasPrefix(name, "::") && !strings.HasPrefix(name, "::static::")
}

func (c *checker) event(cmd command) {
	name := cmd.arg(0)
	for _, known := range knownEvents {
		if name == known || strings.HasSuffix(known, "_") && strings.HasPrefix(name, known) && len(name) > len(known) {
			return
		}
	}
	c.report("unknown-event", cmd.pos(), fmt.Sprintf("event %q", name))
}

func (c *checker) table(cmd command, in scope) {
	t := parseTable(cmd)
	if in.event == "RULE_INIT" {
		c.report("table-in-init", cmd.pos(), "table "+t.op+" in RULE_INIT")
	}
	if op, literal := "", false; len(cmd.words) > 1 {
		if op, literal = cmd.words[1].literal(); literal && tableOptions[op] == nil {
			c.report("table-subcommand", cmd.words[1].pos, fmt.Sprintf("table has no subcommand %q", op))
			return
		}
	}
	for _, w := range t.bad {
		if _, literal := w.literal(); literal {
			c.report("table-subcommand", w.pos, fmt.Sprintf("table %s has no option %s", t.op, w.raw))
		}
	}
	c.fixedName(t, in)
	c.timers(t, in)
	c.touches(cmd, t, in)
	if in.onRequest() {
		c.onRequest(cmd, t, in)
	}
}

// fixedName looks at what the subtable's name is made of.
func (c *checker) fixedName(t tableCommand, in scope) {
	if t.subtable == nil {
		return
	}
	candidates := []word{*t.subtable}
	if name, ok := t.subtable.variable(); ok {
		candidates = c.assigned[key(name, in)]
	}
	for _, w := range candidates {
		if c.perTMM(w, in) {
			s, _ := w.inner()
			c.report("fixed-name", w.pos, fmt.Sprintf("the subtable name %s is the same for a TMM at all times, and owned by whichever TMM its hash falls to", s))
		}
	}
}

// perTMM says that the word is made of the TMM's number and nothing else that
// varies.
func (c *checker) perTMM(w word, in scope) bool {
	if w.braced() {
		return false
	}
	isUnit := func(cmd command) bool { return cmd.name() == "TMM::cmp_unit" }
	s, pos := w.inner()
	ps := parts(s, pos, false)
	for _, p := range ps {
		if p.script != "" {
			cmds, err := parseScript(p.script, p.pos)
			if err != nil || len(cmds) != 1 || !isUnit(cmds[0]) {
				return false
			}
			continue
		}
		values := c.assigned[key(p.variable, in)]
		if len(values) == 0 {
			return false
		}
		for _, v := range values {
			if !c.from(v, in, isUnit) {
				return false
			}
		}
	}
	return len(ps) > 0
}

// timers looks at the timeout and lifetime of a write.
func (c *checker) timers(t tableCommand, in scope) {
	if (t.op != "set" && t.op != "add" && t.op != "replace") || len(t.args) < 4 {
		return
	}
	timeout, ok1 := t.args[2].literal()
	lifetime, ok2 := t.args[3].literal()
	if !ok1 || !ok2 {
		return
	}
	a, err1 := strconv.Atoi(timeout)
	b, err2 := strconv.Atoi(lifetime)
	if err1 == nil && err2 == nil && b > 0 && b < a {
		c.report("timers-swapped", t.args[2].pos, fmt.Sprintf("timeout %d, lifetime %d", a, b))
	}
	if strings.HasPrefix(timeout, "indef") && strings.HasPrefix(lifetime, "indef") {
		if _, literal := t.args[0].literal(); !literal {
			c.report("never-expires", t.args[2].pos, "timeout and lifetime are indefinite, and the key varies")
		}
	}
}

// touches looks at commands that restart idle timers.
func (c *checker) touches(cmd command, t tableCommand, in scope) {
	switch t.op {
	case "keys":
		if !t.flags["-count"] && !t.flags["-notouch"] {
			c.report("keys-touch", cmd.pos(), "every entry listed is touched")
		}
	case "incr":
		if !t.flags["-notouch"] && !c.lifetimes {
			c.report("incr-touches", cmd.pos(), "counting restarts the idle timer, and no lifetime is set anywhere in the rule")
		}
	case "lookup":
		text := ""
		if t.subtable != nil {
			text = t.subtable.raw
		}
		if len(t.args) > 0 {
			text += " " + t.args[0].raw
		}
		if !t.flags["-notouch"] && blockRE().MatchString(text) && !c.untimed[t.where()] {
			c.report("lookup-touches", cmd.pos(), "looking extends the entry's time")
		}
	}
}

// onRequest looks at a table command that requests run.
func (c *checker) onRequest(cmd command, t tableCommand, in scope) {
	if in.loop {
		c.report("table-in-loop", cmd.pos(), "table "+t.op+" in a loop")
	}
	subtableFixed := t.subtable == nil
	if t.subtable != nil {
		_, subtableFixed = t.subtable.literal()
	}
	keyFixed := false
	if len(t.args) > 0 {
		_, keyFixed = t.args[0].literal()
	}
	if t.writes() && !in.cond && subtableFixed {
		switch {
		case keyFixed:
			c.report("hot-key", cmd.pos(), "all requests change the entry "+t.args[0].raw)
		case t.subtable != nil && len(t.args) > 0:
			c.report("one-subtable", cmd.pos(), "all requests write into the subtable "+t.subtable.raw)
		}
	}
	if t.op == "lookup" {
		text := in.event
		for _, w := range cmd.words {
			text += "\x00" + w.raw
		}
		if c.lookups[text] {
			c.report("lookup-twice", cmd.pos(), "looked up before in this event")
		}
		c.lookups[text] = true
	}
}

func (c *checker) variable(cmd command, in scope) {
	name := cmd.name()
	if name == "global" {
		c.report("global-variable", cmd.pos(), "global")
		return
	}
	// The name as written: cmd.arg would do, but it may be computed.
	if len(cmd.words) < 2 {
		return
	}
	target, _ := cmd.words[1].literal()
	if isGlobal(target) {
		c.report("global-variable", cmd.words[1].pos, target+" is global")
	}
	writes := name != "set" || len(cmd.words) > 2
	if writes && in.onRequest() && strings.HasPrefix(strings.TrimPrefix(target, "::"), "static::") {
		c.report("static-write", cmd.words[1].pos, target+" changes on this TMM only")
	}
}

func (c *checker) llength(cmd command, in scope) {
	if len(cmd.words) != 2 {
		return
	}
	listing := isTable("keys", "-count")
	_, direct := cmd.words[1].variable()
	if c.from(cmd.words[1], in, listing) && (!direct || in.onRequest()) {
		c.report("keys-llength", cmd.pos(), "all keys are listed to count them")
	}
}

// scan finds lists of keys that are searched or walked through per request.
func (c *checker) scan(cmd command, in scope) {
	if !in.onRequest() {
		return
	}
	words := cmd.words[1:]
	if cmd.name() == "foreach" {
		if len(words) < 3 {
			return
		}
		// Listing is a purpose of its own; looking for one of them is not.
		name := regexp.QuoteMeta("$" + cmd.arg(0))
		body := words[len(words)-1].raw
		if !regexp.MustCompile(name + `"?\s*\}?\s*(eq|equals|==)\s|\s(eq|equals|==)\s*"?` + name).MatchString(body) {
			return
		}
		words = words[1 : len(words)-1]
	}
	for _, w := range words {
		if c.from(w, in, isTable("keys", "-count")) {
			c.report("keys-as-lookup", cmd.pos(), cmd.name()+" over all keys of a subtable")
		}
	}
}

func (c *checker) log(cmd command, in scope) {
	if in.onRequest() && !in.cond {
		c.report("log-per-request", cmd.pos(), "log in "+in.event+" without a condition")
	}
	if last := cmd.words[len(cmd.words)-1]; len(cmd.words) > 1 && in.onRequest() && c.input(last, in) {
		c.report("log-input", last.pos, "what a client sent is in the line")
	}
}

// lookupThenSet finds "if the lookup gave nothing, set", also as the else of
// "if it gave something".
func (c *checker) lookupThenSet(cmd command, in scope) {
	w := cmd.words
	if len(w) < 3 {
		return
	}
	cond, pos := w[1].inner()
	empty, branch := false, w[2]
	for _, t := range tokens(cond) {
		switch t.text {
		case `""`, "{}":
			empty = true
		case "ne", "!=":
			branch = word{}
			if n := len(w); n == 5 && w[3].raw == "else" {
				branch = w[4]
			}
		}
	}
	if !empty || !branch.braced() {
		return
	}
	looked := make(map[string]bool)
	look := func(lookup command) bool {
		if isTable("lookup")(lookup) {
			looked[place(parseTable(lookup))] = true
		}
		return false
	}
	for _, p := range parts(cond, pos, true) {
		if p.variable != "" {
			c.from(word{p.pos, "$" + p.variable}, in, look)
		} else {
			c.from(word{p.pos, "[" + p.script + "]"}, in, look)
		}
	}
	body, at := branch.inner()
	cmds, _ := parseScript(body, at)
	for _, b := range cmds {
		if t := parseTable(b); b.name() == "table" && t.op == "set" && !t.flags["-excl"] && looked[place(t)] {
			c.report("lookup-then-set", b.pos(), "set when a lookup found nothing")
		}
	}
}

// place is the subtable and key of a table command, as written.
func place(t tableCommand) string {
	s := ""
	if t.subtable != nil {
		s = t.subtable.raw
	}
	if len(t.args) > 0 {
		s += "\x00" + t.args[0].raw
	}
	return s
}

func (c *checker) regexp(cmd command) {
	for _, w := range cmd.words[1:] {
		if strings.HasPrefix(w.raw, "-") && w.raw != "--" {
			if w.raw == "-nocase" || w.raw == "-inline" || w.raw == "-all" || w.raw == "-start" {
				return
			}
			continue
		}
		if w.raw == "--" {
			continue
		}
		if p, ok := w.literal(); ok && literalRE().MatchString(p) {
			c.report("regexp-literal", cmd.pos(), "the pattern "+w.raw+" is plain text")
		}
		return
	}
}

func (c *checker) collect(cmd command, in scope) {
	if len(cmd.words) < 2 {
		c.report("collect-unbounded", cmd.pos(), "HTTP::collect without a length")
		return
	}
	w := cmd.words[1]
	isLength := func(cmd command) bool {
		return cmd.name() == "HTTP::header" && slices.ContainsFunc(cmd.words, func(w word) bool {
			s, _ := w.inner()
			return strings.EqualFold(s, "Content-Length")
		})
	}
	if !c.from(w, in, isLength) {
		return
	}
	if name, ok := w.variable(); ok && c.compared[key(name, in)] {
		return
	}
	c.report("collect-unbounded", cmd.pos(), "the client's Content-Length is taken without a limit")
}

// answered looks at what follows an answer in the same block.
func (c *checker) answered(cmd command, in scope, rest []command) {
	if in.outer != nil || len(rest) == 0 || !in.onRequest() {
		return
	}
	switch rest[0].name() {
	case "return", "event", "break", "TCP::close", "HTTP::close", "log", "HTTP::disable":
		return
	}
	c.report("respond-goes-on", rest[0].pos(), rest[0].name()+" after "+cmd.name())
}
