package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// watched cancels once something was written to it.
type watched struct {
	bytes.Buffer
	cancel context.CancelFunc
}

func (w *watched) Write(p []byte) (int, error) {
	w.cancel()
	return w.Buffer.Write(p)
}

// TestInterrupted cuts a run off as soon as its log shows that it runs: what
// was measured is printed, marked partial, and adds up; it is never an OK.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := &watched{cancel: cancel}
	var stderr bytes.Buffer
	env := Env{Stdin: strings.NewReader(""), Stdout: log, Stderr: &stderr, Getenv: func(string) string { return "" }}
	code := Run(ctx, env, []string{"load", "--count", "100000000", "--log", "-", "--log-sample", "1", "--quiet", "--format", "json"})
	if code != exitInterrupted {
		t.Errorf("exit %d, want %d: %s", code, exitInterrupted, stderr.String())
	}
	var r struct {
		Partial          bool
		Sent, OK, Failed int64
		Overall          struct{ Line string }
	}
	if err := json.Unmarshal(stderr.Bytes(), &r); err != nil {
		t.Fatalf("%v in %q", err, stderr.String())
	}
	if !r.Partial || r.Sent == 0 || r.Sent != r.OK+r.Failed || !strings.HasPrefix(r.Overall.Line, "INCOMPLETE: ") {
		t.Errorf("%+v", r)
	}
}

// gone is a reader that went away after the first line.
type gone struct{ n int }

func (g *gone) Write(p []byte) (int, error) {
	if g.n++; g.n > 1 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// TestReaderGone is `| head -1`: the run ends, exit 0, and says nothing of OK.
func TestReaderGone(t *testing.T) {
	var stderr bytes.Buffer
	env := Env{Stdin: strings.NewReader(""), Stdout: &gone{}, Stderr: &stderr, Getenv: func(string) string { return "" }}
	if code := Run(context.Background(), env, []string{"load", "--count", "100000000", "--log", "-", "--log-sample", "1", "--quiet"}); code != 0 {
		t.Errorf("exit %d", code)
	}
	if strings.Contains(stderr.String(), "\nOK:") || !strings.Contains(stderr.String(), "partial run") {
		t.Errorf("stderr:\n%s", stderr.String())
	}
}
