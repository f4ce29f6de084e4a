package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// inMarkdown is a text as Markdown shows it: names and log lines are others', and
// must become no element, link, image or emphasis where a page is made of the
// form. What has no meaning in its place stays as it is, localdb_tmm_2 and p99<50,
// and so do commands between backticks.
func inMarkdown(s string) string {
	if !strings.ContainsAny(s, "\\|<&[`*_~\n\r") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		after, _ := utf8.DecodeRuneInString(s[i+1:])
		escape := false
		switch c {
		case '|', '[':
			// A pipe would end the cell.
			escape = true
		case '\\':
			// At the end our own asterisks may follow.
			escape = i+1 == len(s) || after < utf8.RuneSelf && (unicode.IsPunct(after) || unicode.IsSymbol(after))
		case '<':
			escape = unicode.IsLetter(after) || strings.ContainsRune("/!?", after)
		case '&':
			escape = unicode.IsLetter(after) || after == '#'
		case '*', '~':
			escape = !space(before) || !space(after)
		case '_':
			escape = !alphanumeric(before) || !alphanumeric(after)
		case '`':
			if n := codeSpan(s[i:]); n > 0 {
				b.WriteString(s[i : i+n])
				i += n - 1
				continue
			}
			escape = true
		case '\n', '\r':
			c = ' '
		}
		if escape {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// codeSpan is the length of the command between backticks that s begins with, 0
// where it begins with none. Only what means nothing outside of a code span either
// passes for one.
func codeSpan(s string) int {
	end := strings.IndexByte(s[1:], '`')
	if end <= 0 || s[1] != '-' && !alphanumeric(rune(s[1])) || s[end] == ' ' {
		return 0
	}
	for _, r := range s[1 : 1+end] {
		if r >= utf8.RuneSelf || !alphanumeric(r) && !strings.ContainsRune(" ./:=@%,_-", r) {
			return 0
		}
	}
	return end + 2
}

// space says that emphasis can't be on that side; the end of the text, which
// decodes as RuneError, has none either.
func space(r rune) bool { return r == utf8.RuneError || unicode.IsSpace(r) }

func alphanumeric(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// fence is what stands around a block of code: longer than any run of backticks
// in it.
func fence(code string) string {
	f := "```"
	for strings.Contains(code, f) {
		f += "`"
	}
	return f
}

// inSheet is a cell of a CSV file as a spreadsheet shows it: a text that it would
// run as a formula gets an apostrophe in front. Numbers, signed ones and ranges of
// them too, stay what they are.
func inSheet(s string) string {
	if s == "" || !strings.ContainsRune("=@+-", rune(s[0])) {
		return s
	}
	if s[0] == '+' || s[0] == '-' {
		if len(s) == 1 || strings.ContainsRune(".0123456789", rune(s[1])) && strings.Trim(s, "+-.,0123456789eE%… ") == "" {
			return s
		}
	}
	return "'" + s
}
