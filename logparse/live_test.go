package logparse_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"tbl/logparse"
	"tbl/logparse/input"
)

// line is a sample of core 1.
func line(writes int) string {
	return fmt.Sprintf("May  6 16:02:11 bigip1 info tmm1[16963]: Rule /Common/LOCALDB <HTTP_REQUEST>: tmm=1 subtable=s writes=%d key=k clicks=5 FAST_LOCAL (sampled 1/100)\n", writes)
}

// until polls a condition of real sockets and files.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func start(t *testing.T, in input.Input) *logparse.Watcher {
	t.Helper()
	w, err := logparse.Start(t.Context(), []input.Input{in}, options())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestFollowAcrossRotationAndTruncation(t *testing.T) {
	defer goleak.VerifyNone(t)
	path := filepath.Join(t.TempDir(), "ltm")
	appendTo(t, path, line(1)+line(2))
	w := start(t, input.Follow(path, false))
	until(t, "what was there", func() bool { return w.Samples() == 2 })

	half := line(3)
	appendTo(t, path, half[:50])
	appendTo(t, path, half[50:])
	until(t, "an appended line", func() bool { return w.Samples() == 3 })

	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path+".1", line(4)) // the writer has not noticed yet
	appendTo(t, path, line(5))
	until(t, "both files of a rotation", func() bool { return w.Samples() == 5 })

	appendTo(t, path, line(6)+line(7))
	until(t, "what was appended after it", func() bool { return w.Samples() == 7 })
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, line(8))
	until(t, "the truncation to be noticed", func() bool { return w.Samples() == 8 })
	r, err := w.Stop(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Devices[0]; d.Name != "bigip1" || d.Runs < 1 {
		t.Errorf("device %+v", d)
	}
	if s := strings.Join(r.Warnings, "\n"); !strings.Contains(s, "rotated while it was read (1×)") || !strings.Contains(s, "truncated") {
		t.Errorf("warnings: %s", s)
	}
}

func TestFollowFromEndSeesTheWindowOnly(t *testing.T) {
	defer goleak.VerifyNone(t)
	path := filepath.Join(t.TempDir(), "ltm")
	appendTo(t, path, line(1)+line(2))
	w := start(t, input.Follow(path, true))
	appendTo(t, path, line(3))
	until(t, "the window", func() bool { return w.Samples() == 1 })
	appendTo(t, path, line(4))
	r, err := w.Stop(300*time.Millisecond, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if r.Counts.Samples != 2 || r.Counts.Lines != 2 {
		t.Errorf("counts %+v, want the two lines of the window", r.Counts)
	}
}

func TestCommand(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "ltm")
	appendTo(t, path, line(1)+line(2))
	w := start(t, input.Command("tail -n +1 -f '"+path+"' | cat"))
	until(t, "the command's lines", func() bool { return w.Samples() == 2 })
	r, err := w.Stop(0, 0) // ends the pipeline, else the test hangs
	if err != nil || r.Counts.Samples != 2 || len(r.Warnings) != 0 {
		t.Errorf("%+v, %v", r, err)
	}

	w = start(t, input.Command("cat '"+path+"'"))
	<-w.Done()
	if r, err := w.Stop(0, 0); err != nil || r.Counts.Samples != 2 {
		t.Errorf("a command that ends by itself: %+v, %v", r, err)
	}

	w = start(t, input.Command("cat '"+path+"'; echo connection lost >&2; exit 3"))
	<-w.Done()
	if r, err := w.Stop(0, 0); err != nil || r.Counts.Samples != 2 || r.Broken == nil || !strings.Contains(r.Broken.Error(), "exit status 3: connection lost") {
		t.Errorf("a command that breaks off: %+v, %v", r, err)
	}

	w = start(t, input.Command("echo permission denied >&2; exit 7"))
	<-w.Done()
	if _, err := w.Stop(0, 0); err == nil || !strings.Contains(err.Error(), "exit status 7: permission denied") {
		t.Errorf("a command that fails: %v", err)
	}
}

func TestSyslogUDP(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := start(t, input.Syslog("udp://127.0.0.1:0"))
	c, err := net.Dial("udp", w.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// What anybody sends, first or later, ends nothing.
	io.WriteString(c, "\x1f\x8b\x08\x00 compressed")
	for i := range 5 {
		io.WriteString(c, "<134>"+strings.TrimSuffix(line(i+1), "\n"))
		io.WriteString(c, "\x1f\x8b\x08\x00 compressed")
	}
	until(t, "datagrams", func() bool { return w.Samples() == 5 && w.Lines() == 11 })
	if r, err := w.Stop(0, 0); err != nil || r.Counts.Lines != 11 || r.Counts.Other != 6 {
		t.Errorf("%+v, %v", r.Counts, err)
	}
}

func TestSyslogTCP(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := start(t, input.Syslog("tcp://127.0.0.1:0"))
	dial := func() net.Conn {
		c, err := net.Dial("tcp", w.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := dial(), dial()
	msg := "<134>" + line(1)
	io.WriteString(a, msg[:60])
	io.WriteString(b, fmt.Sprintf("%d %s", len(msg), "<134>"+line(2))) // octet counting
	until(t, "the counted message", func() bool { return w.Samples() == 1 })
	io.WriteString(a, msg[60:])
	until(t, "the line in two pieces", func() bool { return w.Samples() == 2 })
	io.WriteString(b, fmt.Sprintf("%d %s", len(msg)-1, strings.TrimSuffix("<134>"+line(3), "\n")))
	until(t, "a counted message without newline", func() bool { return w.Samples() == 3 })
	a.Close()
	if r, err := w.Stop(0, 0); err != nil || r.Counts.Lines != 3 { // b is still open
		t.Errorf("%+v, %v", r.Counts, err)
	}
	b.Close()
}

func TestLiveInputsThatCannotBeOpened(t *testing.T) {
	for _, in := range []input.Input{
		input.Follow(filepath.Join(t.TempDir(), "none"), false),
		input.Follow(t.TempDir(), false),
		input.Syslog("sctp://127.0.0.1:1"),
		input.Syslog("udp://127.0.0.1"),
	} {
		if _, err := logparse.Start(t.Context(), []input.Input{in}, options()); err == nil || !strings.HasPrefix(err.Error(), in.Name()+": ") {
			t.Errorf("%s: %v", in.Name(), err)
		}
	}
}

func TestSnapshotOfAPipe(t *testing.T) {
	defer goleak.VerifyNone(t)
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	shown := make(chan int64, 1000)
	opt := options()
	opt.Every = time.Millisecond
	opt.Snapshot = func(r *logparse.Result) {
		if len(r.Inputs) != 1 || r.Inputs[0].Name != "-" {
			t.Errorf("a snapshot of %+v", r.Inputs)
		}
		shown <- r.Counts.Samples
	}
	w, err := logparse.Start(t.Context(), []input.Input{input.Stdin(pr)}, opt)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(pw, line(1))
	for n := range shown {
		if n == 1 {
			break
		}
	}
	io.WriteString(pw, line(2))
	pw.Close()
	<-w.Done()
	if r, err := w.Stop(0, 0); err != nil || r.Counts.Samples != 2 {
		t.Errorf("%+v, %v", r.Counts, err)
	}
}

// What has no end of its own is read for days: years are inferred from the time
// that it has become, limits from the time at which they were given.
func TestReadForDays(t *testing.T) {
	defer goleak.VerifyNone(t)
	begun := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	var passed atomic.Int64
	opt := options()
	opt.Now, opt.Run = begun, logparse.RunLast
	opt.Clock = func() time.Time { return begun.Add(time.Duration(passed.Load())) }
	opt.Since = moment(t, "Dec 31 12:00", begun)
	stamped := func(after time.Duration, writes int) string {
		return at(begun.Add(after).Format(time.Stamp), "b", 1, writes)
	}
	check := func(what string, r *logparse.Result, err error) {
		t.Helper()
		if err != nil || r.Counts.Samples != 4 || r.Counts.Outside != 1 || len(r.Devices[0].LastRuns) != 2 {
			t.Fatalf("%s: %+v, %v", what, r, err)
		}
		if first := r.Devices[0].LastRuns[1].First; !first.Equal(begun.Add(30 * time.Hour)) {
			t.Errorf("%s: run 2 began at %v", what, first)
		}
		if last := r.Devices[0].LastRuns[1].Last; !last.Equal(begun.Add(400 * 24 * time.Hour)) {
			t.Errorf("%s: run 2 ended at %v", what, last)
		}
	}
	days := []struct {
		passed time.Duration
		text   string
	}{
		{0, stamped(-time.Minute, 10) + stamped(time.Hour, 20)},
		{30 * time.Hour, stamped(30*time.Hour, 1)}, // of the new year, after a reload
		{400 * 24 * time.Hour, stamped(300*24*time.Hour, 2) + stamped(400*24*time.Hour, 3)},
	}

	path := filepath.Join(t.TempDir(), "ltm")
	appendTo(t, path, days[0].text)
	w, err := logparse.Start(t.Context(), []input.Input{input.Follow(path, false)}, opt)
	if err != nil {
		t.Fatal(err)
	}
	lines := int64(strings.Count(days[0].text, "\n"))
	for _, d := range days[1:] {
		until(t, "the lines of a day", func() bool { return w.Lines() == lines })
		passed.Store(int64(d.passed))
		appendTo(t, path, d.text)
		lines += int64(strings.Count(d.text, "\n"))
	}
	until(t, "the lines of the last day", func() bool { return w.Lines() == lines })
	r, err := w.Stop(0, 0)
	check("a followed file", r, err)

	var text strings.Reader // of the day that is being read
	pipe := readFunc(func(p []byte) (int, error) {
		if text.Len() == 0 && len(days) > 0 {
			passed.Store(int64(days[0].passed))
			text.Reset(days[0].text)
			days = days[1:]
		}
		return text.Read(p)
	})
	r, err = logparse.Scan(t.Context(), []input.Input{input.Reader("pipe", pipe)}, opt)
	check("a pipe", r, err)
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
