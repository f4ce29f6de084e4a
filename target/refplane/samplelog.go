package refplane

import (
	"io"
	"strconv"
	"sync"
	"time"
)

// sampleLog hands lines from the cores to a writer. A core appends to memory
// and goes on; one goroutine writes. When the writer is slower than the cores
// for so long that the memory is full, lines are dropped, counted, and owned
// up to in the log itself, as syslog does.
type sampleLog struct {
	w    io.Writer
	host string // with the blade, and a blank after it
	pid  string // in brackets, with a colon and a blank
	full int    // bytes that may be pending
	wait bool   // a full log blocks instead of dropping (simulated time doesn't mind)

	mu      sync.Mutex
	more    sync.Cond // something is pending, or closing
	less    sync.Cond // something was written
	pending []byte
	writing bool
	closing bool
	done    chan struct{}
	written int64 // lines
	dropped int64 // lines
	held    int64 // dropped since the last line that said so
	err     error
}

// How much may be pending: as much as a slow writer may need time for, or,
// where the cores wait for the writer, what stays in the processor's caches
// between the two.
const (
	logMemory  = 64 << 20
	waitMemory = 64 << 10
)

func newSampleLog(w io.Writer, slot, pid int, wait bool) *sampleLog {
	l := &sampleLog{w: w, host: "tbl ", full: logMemory, wait: wait, done: make(chan struct{})}
	if wait {
		l.full = waitMemory
	}
	if slot > 0 {
		l.host = "slot" + strconv.Itoa(slot) + "/tbl "
	}
	l.pid = "[" + strconv.Itoa(pid) + "]: "
	l.more.L = &l.mu
	l.less.L = &l.mu
	go l.run()
	return l
}

// add takes over a copy of one whole line. It blocks for no longer than another
// core's copy takes.
func (l *sampleLog) add(b []byte) {
	l.mu.Lock()
	for l.wait && len(l.pending) > 0 && len(l.pending)+len(b) > l.full {
		l.less.Wait()
	}
	switch {
	case len(l.pending) > 0 && len(l.pending)+len(b) > l.full, l.err != nil, l.closing:
		l.dropped++
		l.held++
	default:
		if l.held > 0 {
			l.pending = append((&stamp{}).append(l.pending, time.Now()), l.head(0)...)
			l.pending = append(l.pending, "Re-enabling general logging; held "...)
			l.pending = strconv.AppendInt(l.pending, l.held, 10)
			l.pending = append(l.pending, " messages.\n"...)
			l.held = 0
		}
		l.pending = append(l.pending, b...)
		l.written++
		if !l.writing {
			l.more.Signal()
		}
	}
	l.mu.Unlock()
}

// head is what stands between the time and a message of the core's process.
func (l *sampleLog) head(core int) string {
	process := "info tmm"
	if core > 0 {
		process += strconv.Itoa(core)
	}
	return " " + l.host + process + l.pid
}

// stamp writes times, UTC in milliseconds. It keeps the text of the last
// second: lines that follow each other mostly share it. The zero value is
// ready.
type stamp struct {
	unix int64
	text []byte // up to the seconds, of unix; empty: none yet
}

func (s *stamp) append(b []byte, now time.Time) []byte {
	if unix := now.Unix(); unix != s.unix || len(s.text) == 0 {
		s.unix = unix
		s.text = now.UTC().AppendFormat(s.text[:0], "2006-01-02T15:04:05")
	}
	ms := now.Nanosecond() / 1e6
	b = append(b, s.text...)
	b = append(b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	return append(b, "+00:00"...)
}

func (l *sampleLog) run() {
	defer close(l.done)
	var buf []byte
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.pending) == 0 {
			l.less.Broadcast()
			if l.closing {
				return
			}
			l.more.Wait()
		}
		buf, l.pending = l.pending, buf[:0]
		l.writing = true
		l.mu.Unlock()
		_, err := l.w.Write(buf)
		l.mu.Lock()
		l.writing = false
		if err != nil && l.err == nil {
			l.err = err
		}
		if cap(buf) > 1<<20 || err != nil {
			// A burst's memory goes back, and a writer that gave up may still hold it.
			buf = nil
		}
		l.less.Broadcast()
	}
}

// flush waits until nothing is pending.
func (l *sampleLog) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.pending) > 0 || l.writing {
		l.less.Wait()
	}
	return l.err
}

// counts are the lines written and dropped so far.
func (l *sampleLog) counts() (written, dropped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written, l.dropped
}

// close writes out what is pending and ends the goroutine.
func (l *sampleLog) close() error {
	l.mu.Lock()
	l.closing = true
	l.more.Signal()
	l.mu.Unlock()
	<-l.done
	return l.err
}

// appendEncoded appends a key as the log and the wire print it: what is not
// printable ASCII, and the percent sign, as %XX.
func appendEncoded(b, key []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range key {
		if c > 0x20 && c < 0x7f && c != '%' {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}
