package wire

// Classes of bytes for the two encodings, as bits of byteClass.
const (
	plainQuery  = 1 << iota // may stand in a query value as it is
	plainAnswer             // may stand in an answer as it is
)

var byteClass = func() (t [256]uint8) {
	for c := 0x21; c < 0x7F; c++ {
		if c != '%' {
			t[c] |= plainAnswer
		}
	}
	for c := '0'; c <= '9'; c++ {
		t[c] |= plainQuery
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c] |= plainQuery
		t[c-'a'+'A'] |= plainQuery
	}
	for _, c := range "-._~" {
		t[c] |= plainQuery
	}
	return t
}()

const hexDigits = "0123456789ABCDEF"

func appendEncoded[S string | []byte](dst []byte, s S, class uint8) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if byteClass[c]&class != 0 {
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		start = i + 1
	}
	return append(dst, s[start:]...)
}

// AppendQueryValue appends s as a query value: all but letters, digits and
// "-._~" percent-encoded.
func AppendQueryValue(dst []byte, s []byte) []byte { return appendEncoded(dst, s, plainQuery) }

// AppendEncoded appends s as it comes back in answers and log lines: bytes
// 0x00–0x20, '%' and 0x7F and above percent-encoded.
func AppendEncoded(dst []byte, s []byte) []byte { return appendEncoded(dst, s, plainAnswer) }

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// AppendDecoded appends s with its percent escapes resolved. A '%' that
// starts no escape stays as it is, which is how older harnesses, that do not
// encode, are read.
func AppendDecoded(dst []byte, s []byte) []byte {
	dst, _ = appendDecoded(dst, s, false)
	return dst
}

// appendDecoded resolves escapes, and '+' too when plus is set. ok is false
// when a '%' starts no escape.
func appendDecoded[S string | []byte](dst []byte, s S, plus bool) (out []byte, ok bool) {
	ok = true
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 < len(s) {
				hi, ok1 := unhex(s[i+1])
				lo, ok2 := unhex(s[i+2])
				if ok1 && ok2 {
					dst = append(dst, hi<<4|lo)
					i += 2
					continue
				}
			}
			ok = false
		case c == '+' && plus:
			c = ' '
		}
		dst = append(dst, c)
	}
	return dst, ok
}

// matchEncoded returns how many bytes at the start of rest are want in the
// answers' encoding (in either case of the hexadecimal digits), and false
// when rest starts with something else.
func matchEncoded(rest, want []byte) (n int, ok bool) {
	for _, c := range want {
		if byteClass[c]&plainAnswer != 0 {
			if n >= len(rest) || rest[n] != c {
				return 0, false
			}
			n++
			continue
		}
		if n+2 >= len(rest) || rest[n] != '%' {
			return 0, false
		}
		hi, ok1 := unhex(rest[n+1])
		lo, ok2 := unhex(rest[n+2])
		if !ok1 || !ok2 || hi<<4|lo != c {
			return 0, false
		}
		n += 3
	}
	return n, true
}
