package remote

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"tbl/target"
	"tbl/target/wire"
)

const (
	maxHead    = 64 << 10 // bytes of status line and headers
	maxErrText = 200      // bytes of an error's body that are shown
)

// What can be wrong with an answer. The zero-length read before these is the
// server's close.
var (
	errNoAnswer  = errors.New("the server closed the connection without an answer")
	errCut       = errors.New("the answer ended before it was whole")
	errNotHTTP   = errors.New("what came back is not HTTP/1")
	errBadHead   = errors.New("the answer's header is broken")
	errBadChunk  = errors.New("the answer's chunks are broken")
	errTooLarge  = errors.New("the answer is larger than allowed")
	errNoLineEnd = errors.New("the answer has no length and no line end")
)

// response reads one HTTP/1 answer in place. Whoever uses it appends what was
// read to buf and calls step until it is done.
type response struct {
	buf []byte // all that was read
	max int64  // bound of the body

	status  int
	head    int   // length of status line and headers, 0 until they are whole
	length  int64 // of the body, -1: until the connection is closed
	chunked bool
	closes  bool   // the connection ends with this answer
	node    []byte // part of buf
	body    []byte // part of buf, once step was done

	in, out int // chunked: next byte to decode, end of what is decoded

	interims int // interim answers (1xx) so far
}

// maxInterims is how many interim answers may come before the answer: a server
// that sends them without end would keep the reader from looking at the time.
const maxInterims = 64

// reset prepares for the next answer and keeps the buffer.
func (p *response) reset() {
	*p = response{buf: p.buf[:0], max: p.max}
}

// step looks at buf again. eof says that nothing more will come. It returns
// true when the answer is whole, an error when it never will be.
func (p *response) step(eof bool) (done bool, err error) {
	for p.head == 0 {
		ok, err := p.parseHead()
		if err != nil {
			return false, err
		}
		if !ok {
			switch {
			case !eof:
				return false, nil
			case len(p.buf) == 0:
				return false, errNoAnswer
			}
			return false, errCut
		}
	}
	rest := p.buf[p.head:]
	if p.status != 200 {
		// Only the reason is wanted, as far as it comes.
		whole := len(rest) >= maxErrText || p.length >= 0 && int64(len(rest)) >= p.length
		if whole || eof {
			p.body = rest
			return true, nil
		}
		return false, nil
	}
	switch {
	case p.chunked:
		done, err = p.dechunk()
		if err == nil && !done && eof {
			err = errCut
		}
		return done, err
	case p.length >= 0:
		if p.length > p.max {
			return false, errTooLarge
		}
		if int64(len(rest)) < p.length {
			if eof {
				return false, errCut
			}
			return false, nil
		}
		p.body = rest[:p.length]
		return true, nil
	}
	if int64(len(rest)) > p.max {
		return false, errTooLarge
	}
	if !eof {
		return false, nil
	}
	// Nothing but its line end tells a whole answer from a cut one.
	if len(rest) > 0 && rest[len(rest)-1] != '\n' {
		return false, errNoLineEnd
	}
	p.body = rest
	return true, nil
}

// parseHead parses status line and headers once they are whole. Interim
// answers (1xx) are dropped from buf; it then wants to be called again.
func (p *response) parseHead() (ok bool, err error) {
	const proto = "HTTP/1."
	if n := min(len(p.buf), len(proto)); string(p.buf[:n]) != proto[:n] {
		return false, errNotHTTP
	}
	end := 0 // of the line before
	for first := true; ; first = false {
		i := bytes.IndexByte(p.buf[end:], '\n')
		if i < 0 {
			if len(p.buf) > maxHead {
				return false, errBadHead
			}
			return false, nil
		}
		line := p.buf[end : end+i]
		end += i + 1
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if first {
			// Anew each time: the head is parsed once in all but trickles.
			p.status, p.length, p.chunked, p.node = 0, -1, false, nil
			if err := p.statusLine(line); err != nil {
				return false, err
			}
			continue
		}
		if len(line) == 0 {
			break
		}
		if err := p.headerLine(line); err != nil {
			return false, err
		}
	}
	switch {
	case p.status == 101:
		return false, errBadHead // nobody asked for it
	case p.status < 200:
		if p.interims++; p.interims > maxInterims {
			return false, errBadHead
		}
		p.buf = append(p.buf[:0], p.buf[end:]...)
		return len(p.buf) > 0, nil
	case p.status == 204 || p.status == 304:
		p.length, p.chunked = 0, false
	case p.chunked:
		p.length = -1
	case p.length < 0:
		p.closes = true
	}
	p.head, p.in, p.out = end, end, end
	return true, nil
}

func (p *response) statusLine(line []byte) error {
	// HTTP/1.x SSS [reason]
	if len(line) < 12 || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return errBadHead
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return errBadHead
		}
		p.status = p.status*10 + int(c-'0')
	}
	if p.status < 100 {
		return errBadHead
	}
	p.closes = line[7] == '0'
	return nil
}

func (p *response) headerLine(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return errBadHead
	}
	name, value := line[:colon], bytes.TrimSpace(line[colon+1:])
	switch {
	case isName(name, "content-length"):
		var n int64
		if len(value) == 0 || len(value) > 18 {
			return errBadHead
		}
		for _, c := range value {
			if c < '0' || c > '9' {
				return errBadHead
			}
			n = n*10 + int64(c-'0')
		}
		if p.length >= 0 && p.length != n {
			return errBadHead
		}
		p.length = n
	case isName(name, "transfer-encoding"):
		switch {
		case isName(value, "chunked"):
			p.chunked = true
		case !isName(value, "identity"):
			return errBadHead
		}
	case isName(name, "connection"):
		switch {
		case isName(value, "close"):
			p.closes = true
		case isName(value, "keep-alive"):
			p.closes = false
		}
	case isName(name, nodeHeader):
		p.node = value
	}
	return nil
}

var nodeHeader = strings.ToLower(wire.NodeHeader)

// isName compares without regard to the case of b; lower is in lower case.
func isName(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// dechunk decodes as many whole chunks as there are, over themselves.
func (p *response) dechunk() (done bool, err error) {
	for {
		size, next, ok, err := chunkSize(p.buf[p.in:])
		if err != nil || !ok {
			return false, err
		}
		if int64(p.out-p.head)+size > p.max {
			return false, errTooLarge
		}
		data := p.in + next
		if size == 0 {
			return p.trailer(data)
		}
		end := data + int(size)
		// The chunk's own line end: "\r\n", or a bare "\n".
		switch {
		case len(p.buf) > end && p.buf[end] == '\n':
			end++
		case len(p.buf) > end+1:
			if p.buf[end] != '\r' || p.buf[end+1] != '\n' {
				return false, errBadChunk
			}
			end += 2
		default:
			return false, nil
		}
		copy(p.buf[p.out:], p.buf[data:data+int(size)])
		p.out += int(size)
		p.in = end
	}
}

// trailer waits for the empty line after the last chunk.
func (p *response) trailer(at int) (done bool, err error) {
	for {
		i := bytes.IndexByte(p.buf[at:], '\n')
		if i < 0 {
			if len(p.buf)-at > maxHead {
				return false, errBadChunk
			}
			return false, nil
		}
		if i == 0 || i == 1 && p.buf[at] == '\r' {
			p.body = p.buf[p.head:p.out]
			return true, nil
		}
		at += i + 1
	}
}

// chunkSize reads a chunk's size line; next is where its data starts.
func chunkSize(b []byte) (size int64, next int, ok bool, err error) {
	i := 0
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			if i == 0 || c != '\r' && c != '\n' && c != ';' && c != ' ' {
				return 0, 0, false, errBadChunk
			}
			end := bytes.IndexByte(b[i:], '\n')
			if end < 0 {
				if len(b) > maxHead {
					return 0, 0, false, errBadChunk
				}
				return 0, 0, false, nil
			}
			return size, i + end + 1, true, nil
		}
		if i == 15 {
			return 0, 0, false, errBadChunk
		}
		size = size<<4 | int64(c)
	}
	return 0, 0, false, nil
}

// fill turns the whole answer into ans, or into the error that it is.
func (p *response) fill(req *target.Request, ans *target.Answer) error {
	ans.Node = append(ans.Node[:0], p.node...)
	switch {
	case p.status == 200:
		if err := wire.ParseAnswer(ans, req, p.body); err != nil {
			return &target.Error{Class: target.ClassMalformed, Status: 200, Err: err}
		}
		return nil
	case p.status >= 500:
		return p.refusal(target.ClassHTTP5xx)
	case p.status >= 400:
		return p.refusal(target.ClassHTTP4xx)
	}
	return p.refusal(target.ClassMalformed)
}

// refusal is an answer that says no, with the first line of its reason.
func (p *response) refusal(class target.Class) error {
	text, _, _ := bytes.Cut(p.body[:min(len(p.body), maxErrText)], []byte("\n"))
	e := &target.Error{Class: class, Completion: target.CompletionYes, Status: p.status}
	if text = bytes.TrimSpace(text); len(text) > 0 && !p.chunked {
		e.Err = fmt.Errorf("status %d: %q", p.status, text)
	}
	return e
}
