package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"tbl/target"
)

// FaultKind is a point at which an invocation can be made to fail.
type FaultKind uint8

// The kinds, in the order in which a request passes them.
const (
	FaultClient     FaultKind = iota // before the client sends: its own error
	FaultNotReached                  // no connection: the node sees nothing
	FaultNo                          // reached, certainly not done
	FaultMaybe                       // done, but the connection is reset before the answer
	FaultCut                         // done, the answer is cut short
	FaultYes                         // done, and the client knows, but has no answer
	FaultStatus                      // answered with an application error, not done
	NumFaults                        // how many there are
)

// faults is the one table of them. done says that the node performs the
// request all the same.
var faults = [NumFaults]struct {
	name, help string
	class      target.Class
	completion target.Completion
	status     int
	done       bool
}{
	FaultClient:     {"client", "the client's own error before it sends", target.ClassClient, target.CompletionUnsent, 0, false},
	FaultNotReached: {"not-reached", "connection refused", target.ClassRefused, target.CompletionNotReached, 0, false},
	FaultNo:         {"no", "reached, certainly not done", target.ClassReset, target.CompletionNo, 0, false},
	FaultMaybe:      {"maybe", "done, then reset before the answer", target.ClassReset, target.CompletionMaybe, 0, true},
	FaultCut:        {"cut", "done, answer cut short", target.ClassTruncated, target.CompletionMaybe, 0, true},
	FaultYes:        {"yes", "done, answer unreadable", target.ClassMalformed, target.CompletionYes, 0, true},
	FaultStatus:     {"http-500", "answered with an application error", target.ClassHTTP5xx, target.CompletionYes, 500, false},
}

// String is the kind as flags spell it.
func (k FaultKind) String() string {
	if k < NumFaults {
		return faults[k].name
	}
	return fmt.Sprintf("fault(%d)", uint8(k))
}

// Help describes the kind in half a line.
func (k FaultKind) Help() string { return faults[k].help }

// ParseFaultKind reads what String wrote.
func ParseFaultKind(s string) (FaultKind, error) {
	for k := range NumFaults {
		if k.String() == s {
			return k, nil
		}
	}
	return 0, fmt.Errorf("unknown failure %q: want one of %s", s, strings.Join(FaultNames(), ", "))
}

// FaultNames lists the kinds as flags spell them.
func FaultNames() []string {
	names := make([]string, NumFaults)
	for k := range NumFaults {
		names[k] = k.String()
	}
	return names
}

// errInjected is the cause of every injected failure.
var errInjected = errors.New("injected failure")

// newFault is the error of a kind.
func newFault(k FaultKind) *target.Error {
	f := &faults[k]
	return &target.Error{Class: f.class, Completion: f.completion, Status: f.status, Err: errInjected}
}

// Fault is a failure with its probability.
type Fault struct {
	Kind FaultKind
	P    float64 // 0 to 1; the probabilities of one node's faults add up to 1 at most
}

// Faulty is a target that fails on demand, for tests and rehearsals. All
// methods are safe for concurrent use.
type Faulty struct {
	target.Target
	rng    rng
	dead   atomic.Bool
	faults atomic.Pointer[[]Fault]
	script atomic.Pointer[func(*target.Request) (FaultKind, bool)]
}

// NewFaulty wraps t. It fails nothing until told to. seed makes the
// probabilities repeatable; 0: not repeatable.
func NewFaulty(t target.Target, seed uint64) *Faulty { return &Faulty{Target: t, rng: rng{seed: seed}} }

// Set replaces the random faults; none ends them.
func (f *Faulty) Set(faults ...Fault) { f.faults.Store(&faults) }

// Script has each request's fate decided by fn, before all random faults. Nil
// ends it. fn must be safe for concurrent use.
func (f *Faulty) Script(fn func(*target.Request) (FaultKind, bool)) {
	if fn == nil {
		f.script.Store(nil)
		return
	}
	f.script.Store(&fn)
}

// Kill makes the node unreachable until Revive.
func (f *Faulty) Kill() { f.dead.Store(true) }

// Revive undoes Kill.
func (f *Faulty) Revive() { f.dead.Store(false) }

// Do performs the request, or fails it.
func (f *Faulty) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	k, fail := f.fate(req)
	if !fail {
		return f.Target.Do(ctx, req, ans)
	}
	if !faults[k].done {
		ans.Reset()
		return newFault(k)
	}
	if err := f.Target.Do(ctx, req, ans); err != nil {
		return err
	}
	return newFault(k)
}

func (f *Faulty) fate(req *target.Request) (FaultKind, bool) {
	if f.dead.Load() {
		return FaultNotReached, true
	}
	if fn := f.script.Load(); fn != nil {
		if k, fail := (*fn)(req); fail {
			return k, true
		}
	}
	list := f.faults.Load()
	if list == nil || len(*list) == 0 {
		return 0, false
	}
	u := float64(f.rng.next()>>11) / (1 << 53)
	for _, x := range *list {
		if u < x.P {
			return x.Kind, true
		}
		u -= x.P
	}
	return 0, false
}

// Named is a node in this process that says its name in each answer, as a
// node behind a listener does.
type Named struct {
	target.Target
	name   string
	served atomic.Int64
}

// NewNamed names t.
func NewNamed(name string, t target.Target) *Named { return &Named{Target: t, name: name} }

// Name is the node's name.
func (n *Named) Name() string { return n.name }

// Served is how many requests the node has answered or failed itself: its
// own count, whatever became of the answers.
func (n *Named) Served() int64 { return n.served.Load() }

// Do performs the request and signs the answer.
func (n *Named) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	n.served.Add(1)
	err := n.Target.Do(ctx, req, ans)
	ans.Node = append(ans.Node[:0], n.name...)
	return err
}
