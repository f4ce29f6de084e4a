package lint

import (
	"fmt"
	"strings"
)

// unbraced looks at the expressions of a command.
func (c *checker) unbraced(cmd command, in scope) {
	var exprs []word
	w := cmd.words
	switch cmd.name() {
	case "expr":
		exprs = w[1:]
	case "while":
		exprs = w[1:min(2, len(w))]
	case "for":
		exprs = w[min(2, len(w)):min(3, len(w))]
	case "if":
		for i := 1; i < len(w); i++ {
			if i == 1 || w[i-1].raw == "elseif" {
				exprs = append(exprs, w[i])
			}
		}
	}
	input := false
	for _, e := range exprs {
		if e.braced() || !strings.ContainsAny(e.raw, "$[") {
			continue
		}
		c.report("unbraced-expr", cmd.pos(), cmd.name()+" without braces")
		input = c.input(e, in)
		break
	}
	if input {
		c.report("eval-input", cmd.pos(), "an unbraced expression runs what a client sent")
	}
}

// expression is the second walk: the checks that look at an expression.
func (c *checker) expression(text string, pos int, in scope) {
	for _, p := range parts(text, pos, true) {
		if isGlobal(p.variable) {
			c.report("global-variable", p.pos, "$"+p.variable+" is global")
		}
	}
	ts := tokens(text)
	for i, t := range ts {
		if t.operand {
			continue
		}
		at := pos + t.pos
		var left, right string
		if i > 0 {
			left = ts[i-1].text
		}
		if i+1 < len(ts) {
			right = ts[i+1].text
		}
		switch t.text {
		case "**", "in", "ni":
			c.report("tcl85", at, "the operator "+t.text+" is not in Tcl 8.4")
		case "==", "!=":
			if isText(left) || isText(right) {
				c.report("string-compare", at, fmt.Sprintf("%s compares numbers first", t.text))
			}
		case "matches_regex":
			if s := strings.Trim(right, "\"{}"); s != "" && literalRE().MatchString(s) {
				c.report("regexp-literal", at, "the pattern "+right+" is plain text")
			}
		case "contains":
			if c.from(word{0, left}, in, isTable("keys", "-count")) {
				c.report("keys-as-lookup", at, "all keys are listed to look for one")
			}
		}
	}
}

// isText says that an operand is a string that is no number.
func isText(s string) bool {
	if len(s) < 2 || s[0] != '"' && s[0] != '{' {
		return false
	}
	inner := s[1 : len(s)-1]
	return !strings.ContainsAny(inner, "$[") && !numberRE().MatchString(inner)
}
