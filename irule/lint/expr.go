package lint

import "strings"

// token is an operand or an operator of an expression.
type token struct {
	pos     int // offset in the expression
	text    string
	operand bool // a variable, script, string, number or parenthesis
}

// operators made of signs, longest first.
var signs = []string{"<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "**", "+", "-", "*", "/", "%", "<", ">", "!", "~", "&", "|", "^", "?", ":", ","}

// wordOperators are those made of letters.
var wordOperators = map[string]bool{
	"eq": true, "ne": true, "in": true, "ni": true, "and": true, "or": true, "not": true, "equals": true,
	"starts_with": true, "ends_with": true, "contains": true, "matches": true, "matches_glob": true, "matches_regex": true,
}

// tokens splits an expression; a parenthesis is one operand, and its inside is
// split too, behind it.
func tokens(s string) []token {
	return tokensAt(s, 0, 0)
}

func tokensAt(s string, base, depth int) []token {
	var out []token
	if depth > maxDepth {
		return out
	}
	for i := 0; i < len(s); {
		if isSpace(s[i]) {
			i++
			continue
		}
		end, err := i+1, error(nil)
		switch c := s[i]; {
		case c == '[':
			end, err = closeBracket(s, i, 0)
			end++
		case c == '"':
			end, err = closeQuote(s, i, 0)
			end++
		case c == '{':
			end, err = closeBrace(s, i)
			end++
		case c == '$':
			_, end = variableAt(s, i)
			end = max(end, i+1)
		case c == '(':
			end = closeParen(s, i)
			out = append(out, token{base + i, s[i:end], true})
			out = append(out, tokensAt(s[i+1:max(i+1, end-1)], base+i+1, depth+1)...)
			i = end
			continue
		case isWordByte(c):
			for end < len(s) && (isWordByte(s[end]) || s[end] == '.') {
				end++
			}
			text := s[i:end]
			out = append(out, token{base + i, text, !wordOperators[text]})
			i = end
			continue
		default:
			for _, op := range signs {
				if strings.HasPrefix(s[i:], op) {
					end = i + len(op)
					break
				}
			}
			out = append(out, token{base + i, s[i:end], false})
			i = end
			continue
		}
		if err != nil {
			return out
		}
		out = append(out, token{base + i, s[i:end], true})
		i = end
	}
	return out
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// closeParen returns the offset behind the parenthesis that opens at i.
func closeParen(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		var end int
		var err error
		switch s[i] {
		case '\\':
			i++
			continue
		case '[':
			end, err = closeBracket(s, i, 0)
		case '"':
			end, err = closeQuote(s, i, 0)
		case '{':
			end, err = closeBrace(s, i)
		case '(':
			depth++
			continue
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
			continue
		default:
			continue
		}
		if err != nil {
			return len(s)
		}
		i = end
	}
	return len(s)
}
