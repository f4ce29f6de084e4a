package logparse

import (
	"context"
	"errors"
	"io"
	"time"
)

type liveSource interface{ io.Closer }

func (in Input) openLive() (liveSource, error) { return nil, errors.New("not yet") }

// Watcher reads live inputs in the background.
type Watcher struct{}

func (w *Watcher) wait() (*Result, error) { return nil, nil }

// Start opens inputs (the port is bound, the command runs, the file's end is noted when it
// returns) and reads them until Stop or until ctx is done.
func Start(ctx context.Context, inputs []Input, opt Options) (*Watcher, error) { panic("not yet") }

// Samples is the number of samples so far. Safe for concurrent use.
func (w *Watcher) Samples() int64 { panic("not yet") }

// Stop ends the reading after quiet has passed without a new line, at most after limit, and returns what was read.
func (w *Watcher) Stop(quiet, limit time.Duration) (*Result, error) { panic("not yet") }
