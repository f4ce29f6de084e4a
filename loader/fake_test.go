package loader

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tbl/target"
)

// fake is a target in the time of the test's bubble, whose cores answer after
// a while and remember what they wrote.
type fake struct {
	cores   int
	latency time.Duration
	// fail may answer for request n (from 0, all operations but info and stats).
	fail func(n int64, req *target.Request) error
	// core may choose the core of request n.
	core func(n int64, req *target.Request) int
	// answer may change an answer.
	answer func(n int64, req *target.Request, ans *target.Answer)

	n      atomic.Int64
	mu     sync.Mutex
	writes map[string]string
	posts  int
	resets int
}

func (f *fake) Name() string        { return "fake" }
func (f *fake) Clock() target.Clock { return target.Wall{} }
func (f *fake) Close() error        { return nil }

func (f *fake) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	ans.Reset()
	if req.Op == target.OpInfo {
		ans.Cores = f.cores
		if f.core != nil {
			ans.Core = f.core(-1, req)
		}
		return nil
	}
	if req.Op == target.OpStats {
		return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: 404}
	}
	n := f.n.Add(1) - 1
	if f.latency > 0 {
		if (target.Wall{}).Sleep(ctx, f.latency) != nil {
			return &target.Error{Class: target.ClassCanceled, Err: ctx.Err()}
		}
	}
	if f.fail != nil {
		if err := f.fail(n, req); err != nil {
			return err
		}
	}
	ans.Core, ans.Cores = int(n)%f.cores, f.cores
	if f.core != nil {
		ans.Core = f.core(n, req)
	}
	f.mu.Lock()
	switch req.Op {
	case target.OpLoad:
		if f.writes != nil {
			f.writes[string(req.Key)] = string(req.Value)
		}
		ans.Key = append(ans.Key, req.Key...)
	case target.OpBulkLoad:
		f.posts++
		for _, c := range req.Body {
			if c == '\n' {
				ans.Written++
			}
		}
		ans.Clicks = 5 * ans.Written
		ans.ClicksPerWrite = 5
	case target.OpReset:
		f.resets++
		ans.Deleted = int64(len(f.writes))
		clear(f.writes)
	}
	f.mu.Unlock()
	if f.answer != nil {
		f.answer(n, req, ans)
	}
	return nil
}

// checkAccount fails the test unless every request is accounted for.
func checkAccount(t *testing.T, a Accounting) {
	t.Helper()
	sum := a.OK
	for _, e := range a.Errors {
		sum += e.Count
		if e.Count == 0 || e.Example == "" {
			t.Errorf("error class %v: count %d, example %q", e.Class, e.Count, e.Example)
		}
	}
	if a.Sent != sum || a.Sent != a.OK+a.Failed {
		t.Errorf("sent %d, ok %d, failed %d, errors %+v: does not add up", a.Sent, a.OK, a.Failed, a.Errors)
	}
}

func refused() error {
	return &target.Error{Class: target.ClassRefused, Completion: target.CompletionNotReached}
}
