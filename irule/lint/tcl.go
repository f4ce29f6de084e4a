package lint

import (
	"fmt"
	"strings"
)

// maxDepth bounds nested brackets and blocks, so that a hostile file can't
// exhaust the stack.
const maxDepth = 200

// syntaxError is Tcl that can't be read on from.
type syntaxError struct {
	pos int // offset in the source
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

// word is one word of a command.
type word struct {
	pos int    // offset of its first byte in the source
	raw string // as written, with its braces or quotes
}

// braced says that the word is in braces: nothing in it is substituted.
func (w word) braced() bool {
	return len(w.raw) >= 2 && w.raw[0] == '{' && w.raw[len(w.raw)-1] == '}'
}

func (w word) quoted() bool {
	return len(w.raw) >= 2 && w.raw[0] == '"' && w.raw[len(w.raw)-1] == '"'
}

// inner is the word without its braces or quotes, and where that starts.
func (w word) inner() (string, int) {
	if w.braced() || w.quoted() {
		return w.raw[1 : len(w.raw)-1], w.pos + 1
	}
	return w.raw, w.pos
}

// literal is the word's value where nothing is substituted in it.
func (w word) literal() (string, bool) {
	s, _ := w.inner()
	if w.braced() {
		return s, true
	}
	if strings.ContainsAny(s, "$[\\") {
		return "", false
	}
	return s, true
}

// variable is the name when the word is a variable and nothing else.
func (w word) variable() (string, bool) {
	s, _ := w.inner()
	if w.braced() || len(s) < 2 || s[0] != '$' {
		return "", false
	}
	name, n := variableAt(s, 0)
	return name, n == len(s)
}

// substitution is the script when the word is one command substitution and
// nothing else.
func (w word) substitution() (string, int, bool) {
	s, pos := w.inner()
	if w.braced() || len(s) < 2 || s[0] != '[' {
		return "", 0, false
	}
	end, err := closeBracket(s, 0, 0)
	if err != nil || end != len(s)-1 {
		return "", 0, false
	}
	return s[1:end], pos + 1, true
}

// command is one command with its words.
type command struct {
	words []word
}

func (c command) pos() int { return c.words[0].pos }

// name is the command's name, with leading colons dropped, and empty when it
// is computed.
func (c command) name() string {
	s, _ := c.words[0].literal()
	return strings.TrimPrefix(s, "::")
}

// arg is the i-th argument's literal value, or empty.
func (c command) arg(i int) string {
	if i+1 >= len(c.words) {
		return ""
	}
	s, _ := c.words[i+1].literal()
	return s
}

// The close functions return the offset of the byte that closes the one at
// offset at of s.

func closeBrace(s string, at int) (int, error) {
	depth := 0
	for i := at; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i, nil
			}
		}
	}
	return 0, &syntaxError{at, "missing close brace"}
}

func closeBracket(s string, at, depth int) (int, error) {
	if depth > maxDepth {
		return 0, &syntaxError{at, "nested too deeply"}
	}
	for i := at + 1; i < len(s); i++ {
		var err error
		switch s[i] {
		case '\\':
			i++
		case '{':
			i, err = closeBrace(s, i)
		case '[':
			i, err = closeBracket(s, i, depth+1)
		case '"':
			// A quote opens a word only where a word begins.
			if strings.IndexByte(" \t\r\n[(;", s[i-1]) >= 0 {
				i, err = closeQuote(s, i, depth+1)
			}
		case ']':
			return i, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, &syntaxError{at, "missing close bracket"}
}

func closeQuote(s string, at, depth int) (int, error) {
	for i := at + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			end, err := closeBracket(s, i, depth+1)
			if err != nil {
				return 0, err
			}
			i = end
		case '"':
			return i, nil
		}
	}
	return 0, &syntaxError{at, "missing close quote"}
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v'
}

// endOfWord returns the offset behind the word that starts at i.
func endOfWord(s string, i int) (int, error) {
	switch s[i] {
	case '{':
		// {*} before a word is Tcl 8.5's expansion; the word goes on.
		if !strings.HasPrefix(s[i:], "{*}") || i+3 >= len(s) || isSpace(s[i+3]) || s[i+3] == ';' {
			end, err := closeBrace(s, i)
			return end + 1, err
		}
		i += 3
		return endOfWord(s, i)
	case '"':
		end, err := closeQuote(s, i, 0)
		return end + 1, err
	}
	for ; i < len(s); i++ {
		var err error
		switch c := s[i]; {
		case c == '\\':
			if i+1 < len(s) && s[i+1] == '\n' {
				return i, nil
			}
			i++
		case c == '[':
			i, err = closeBracket(s, i, 0)
		case c == '$' && i+1 < len(s) && s[i+1] == '{':
			i, err = closeBrace(s, i+1)
		case isSpace(c) || c == ';':
			return i, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return min(i, len(s)), nil
}

// parseScript splits a script into commands. base is the script's offset in
// the source. On an error the commands before it are returned with it.
func parseScript(s string, base int) ([]command, error) {
	var out []command
	for i := 0; i < len(s); {
		c := s[i]
		if isSpace(c) || c == ';' {
			i++
			continue
		}
		if c == '\\' && i+1 < len(s) && s[i+1] == '\n' {
			i += 2
			continue
		}
		if c == '#' {
			for i < len(s) && s[i] != '\n' {
				if s[i] == '\\' {
					i++
				}
				i++
			}
			continue
		}
		var cmd command
		for i < len(s) && s[i] != '\n' && s[i] != ';' {
			if isSpace(s[i]) {
				i++
				continue
			}
			if s[i] == '\\' && i+1 < len(s) && (s[i+1] == '\n' || s[i+1] == '\r') {
				i += 2
				continue
			}
			end, err := endOfWord(s, i)
			if err != nil {
				if se, ok := err.(*syntaxError); ok {
					return out, &syntaxError{base + se.pos, se.msg}
				}
				return out, err
			}
			if end <= i {
				return out, &syntaxError{base + i, fmt.Sprintf("unexpected %q", s[i])}
			}
			cmd.words = append(cmd.words, word{base + i, s[i:end]})
			i = end
		}
		if len(cmd.words) > 0 {
			out = append(out, cmd)
		}
	}
	return out, nil
}

// parseList splits a Tcl list as a switch has it between its braces.
func parseList(s string, base int) ([]word, error) {
	var out []word
	for i := 0; i < len(s); {
		if isSpace(s[i]) || s[i] == ';' || s[i] == '\\' && i+1 < len(s) && (s[i+1] == '\n' || s[i+1] == '\r') {
			i++
			continue
		}
		end, err := endOfWord(s, i)
		if err != nil {
			if se, ok := err.(*syntaxError); ok {
				return out, &syntaxError{base + se.pos, se.msg}
			}
			return out, err
		}
		if end <= i {
			end = i + 1
		}
		out = append(out, word{base + i, s[i:end]})
		i = end
	}
	return out, nil
}

// variableAt returns the name of the variable whose $ is at offset i of s,
// and the offset behind it; an empty name when it is no variable.
func variableAt(s string, i int) (string, int) {
	i++
	if i < len(s) && s[i] == '{' {
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			return "", len(s)
		}
		return s[i+1 : i+end], i + end + 1
	}
	start := i
	for i < len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
			i++
		case c == ':' && i+1 < len(s) && s[i+1] == ':':
			i += 2
		default:
			return s[start:i], i
		}
	}
	return s[start:i], i
}

// part is a substitution in a word: a variable or a script.
type part struct {
	pos      int
	variable string // name, when it is a variable
	script   string // text between the brackets, otherwise
}

// parts lists what is substituted in a text outside braces. expr says that
// the text is an expression, in which braces quote an operand.
func parts(s string, base int, expr bool) []part {
	var out []part
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			if expr {
				if end, err := closeBrace(s, i); err == nil {
					i = end
				}
			}
		case '$':
			if name, end := variableAt(s, i); name != "" {
				out = append(out, part{pos: base + i, variable: name})
				i = end - 1
			}
		case '[':
			end, err := closeBracket(s, i, 0)
			if err != nil {
				return out
			}
			out = append(out, part{pos: base + i + 1, script: s[i+1 : end]})
			i = end
		}
	}
	return out
}
