package app

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"tbl/logparse"
	"tbl/logparse/input"
	"tbl/logparse/logline"
	"tbl/prober/proof"
)

// captured is a buffer that an embedded dataplane's log goes to.
type captured struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends.
func (b *captured) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// embeddedLog is the window of an embedded dataplane's log.
type embeddedLog struct {
	buf   *captured
	flush func() error
}

// Begin forgets what was logged so far.
func (l *embeddedLog) Begin(context.Context) error {
	if err := l.flush(); err != nil {
		return err
	}
	l.buf.mu.Lock()
	defer l.buf.mu.Unlock()
	l.buf.buf.Reset()
	return nil
}

// End reads what was logged since.
func (l *embeddedLog) End(_ context.Context, add func(*logline.Line)) (logparse.Counts, error) {
	if err := l.flush(); err != nil {
		return logparse.Counts{}, err
	}
	l.buf.mu.Lock()
	defer l.buf.mu.Unlock()
	return logparse.Read(bytes.NewReader(l.buf.buf.Bytes()), add)
}

// remoteLog is the window of a log that somebody else writes: a file, a
// command's output, a pipe, or what a syslog server would receive.
type remoteLog struct {
	input   input.Input
	watcher *logparse.Watcher
}

// A log reaches us late: syslog daemons buffer, and a tail polls. The window
// closes when nothing has come for a while.
const (
	logQuiet = 1500 * time.Millisecond
	logLimit = 15 * time.Second
)

// remoteLog opens what the flag names.
func (a *app) remoteLog(flag, value string) (proof.Log, error) {
	switch {
	case flag == "log-cmd":
		return &remoteLog{input: input.Command(value)}, nil
	case flag == "syslog-listen":
		return &remoteLog{input: input.Syslog(value)}, nil
	case value == "-":
		return &remoteLog{input: a.stdinInput()}, nil
	}
	if err := readable(value); err != nil {
		return nil, err
	}
	return &remoteLog{input: input.Follow(value, true)}, nil
}

// Begin starts to listen, or notes where the file ends.
func (l *remoteLog) Begin(ctx context.Context) error {
	w, err := logparse.Start(context.WithoutCancel(ctx), []input.Input{l.input}, logparse.Options{
		Run:        logparse.RunAll,
		NewSamples: func() logparse.SampleCollector { return &kept{} },
	})
	if err != nil {
		return usagef("%w", err)
	}
	l.watcher = w
	return nil
}

// End waits for the last lines and gives out the samples.
func (l *remoteLog) End(_ context.Context, add func(*logline.Line)) (logparse.Counts, error) {
	res, err := l.watcher.Stop(logQuiet, logLimit)
	if res == nil {
		return logparse.Counts{}, err
	}
	for _, d := range res.Devices {
		if k, ok := d.Samples.(*kept); ok {
			for i := range k.lines {
				add(&k.lines[i])
			}
		}
	}
	if err == nil && res.Broken != nil {
		err = incompletef("the log is read in part only: %w", res.Broken)
	}
	return res.Counts, err
}

// kept keeps samples whole; there are few in a proof's window.
type kept struct{ lines []logline.Line }

// Add copies the line.
func (k *kept) Add(l *logline.Line) {
	c := *l
	c.Stamp, c.Host, c.Subtable, c.Key = nil, nil, bytes.Clone(l.Subtable), nil
	k.lines = append(k.lines, c)
}

// Merge appends what later holds.
func (k *kept) Merge(later logparse.SampleCollector) {
	k.lines = slices.Concat(k.lines, later.(*kept).lines)
}

// Reset empties it.
func (k *kept) Reset() { k.lines = nil }
