// Package cluster is a target made of targets: it picks the node for each
// invocation, fails over where that is safe, and keeps all invocations of one
// transaction on one node.
//
// A Family is the list of nodes of a service, a Policy picks from it, and a
// Proxy joins the two with a transport; one Proxy is one client of the
// service. A transaction is carried by the context (see Begin), and a Pins
// store remembers its node for all proxies that share the store.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"tbl/target"
)

// Errors that callers decide on. All reach the caller wrapped in a
// *target.Error.
var (
	// ErrUnavailable: no node is left to try.
	ErrUnavailable = errors.New("no node available")
	// ErrUnavailableInTransaction: the transaction's node failed, and another
	// must not take over.
	ErrUnavailableInTransaction = errors.New("node unavailable within a transaction")
	// ErrStickyTargetGone: the transaction's node has left the service.
	// Nothing was sent.
	ErrStickyTargetGone = errors.New("the transaction's node is gone")
	// ErrTransactionEnded: the transaction was ended, or has timed out.
	// Nothing was sent.
	ErrTransactionEnded = errors.New("the transaction has ended")
	// ErrTooManyTransactions: the pin store is full. Nothing was sent.
	ErrTooManyTransactions = errors.New("too many transactions at once")
)

// PinMode says when a transaction is pinned firmly.
type PinMode uint8

// The modes.
const (
	FirstCall PinMode = iota // when an invocation has reached a server; before that it may fail over
	AtBegin                  // with the first choice: no invocation of it ever fails over
)

// GoneMode says what becomes of a transaction whose node has left.
type GoneMode uint8

// The modes.
const (
	Refuse GoneMode = iota // ErrStickyTargetGone
	Repin                  // another node goes on with it: the transaction is split, knowingly
)

// Config configures a Proxy.
type Config struct {
	// Family is the list of nodes. Required.
	Family *Family
	// Policy picks. The zero value is RoundRobin.
	Policy Policy
	// Sticky keeps transactions on their node. False: transactions are ignored.
	Sticky bool
	// Pins is the pin store of a sticky proxy, shared with others so that a
	// transaction stays on one node across them. Nil: one of its own.
	Pins *Pins
	// Mode and Gone refine Sticky. Zero values: FirstCall, Refuse.
	Mode PinMode
	Gone GoneMode
	// Transport is how the nodes are reached. Zero: Embedded. Every node must
	// offer it.
	Transport Transport
	// Seed makes random choices repeatable, for one goroutine and at the price
	// of a counter that goroutines share. 0: not repeatable.
	Seed uint64
	// Name tells the proxy apart. Empty: made of the nodes' names.
	Name string
	// CloseNodes makes Close close the nodes' targets too.
	CloseNodes bool
}

// Proxy is one client of a service: a target.Target that sends each
// invocation to a node of its family.
type Proxy struct {
	family    *Family
	pick      func(*Proxy, *snapshot) *member
	pins      *Pins // nil: not sticky
	mode      PinMode
	gone      GoneMode
	transport Transport
	name      string
	owns      bool
	closed    atomic.Bool

	elected atomic.Pointer[member] // first-available
	rng     rng
}

var _ target.Target = (*Proxy)(nil)

// New makes a proxy.
func New(cfg Config) (*Proxy, error) {
	switch {
	case cfg.Family == nil:
		return nil, errors.New("cluster: no family given")
	case cfg.Policy >= NumPolicies:
		return nil, fmt.Errorf("cluster: %v does not exist", cfg.Policy)
	case cfg.Transport >= NumTransports:
		return nil, fmt.Errorf("cluster: transport %d does not exist", cfg.Transport)
	}
	p := &Proxy{
		family: cfg.Family, pick: policies[cfg.Policy].pick, mode: cfg.Mode, gone: cfg.Gone,
		transport: cfg.Transport, name: cfg.Name, owns: cfg.CloseNodes, rng: rng{seed: cfg.Seed},
	}
	if cfg.Sticky {
		if p.pins = cfg.Pins; p.pins == nil {
			p.pins = NewPins(PinsConfig{Clock: cfg.Family.clock})
		}
	}
	if p.name == "" {
		_, names := cfg.Family.View()
		p.name = "cluster of " + strings.Join(names, ", ")
	}
	if cfg.Policy == LeastLoaded {
		cfg.Family.counting.Store(true)
	}
	return p, nil
}

// Clock is the family's.
func (p *Proxy) Clock() target.Clock { return p.family.clock }

// Name tells the proxy apart.
func (p *Proxy) Name() string { return p.name }

// Close makes the proxy refuse further invocations, and closes the nodes if
// it was configured to.
func (p *Proxy) Close() error {
	if p.closed.Swap(true) || !p.owns {
		return nil
	}
	var errs []error
	seen := make(map[target.Target]bool)
	for _, n := range p.family.nodes() {
		for _, t := range n.Targets {
			if t != nil && !seen[t] {
				seen[t] = true
				errs = append(errs, t.Close())
			}
		}
	}
	return errors.Join(errs...)
}

// Begin is the package's Begin, and in mode AtBegin pins the transaction at
// once, if a node is there.
func (p *Proxy) Begin(ctx context.Context) (context.Context, *Tx) {
	ctx, tx := Begin(ctx)
	if p.pins != nil && p.mode == AtBegin {
		if _, c, err := p.pins.claim(p, tx, p.pins.now()); err == nil {
			p.pins.settle(tx.id, c, outcomeUnsent)
		}
	}
	return ctx, tx
}

// Attempt is a failed attempt of an invocation.
type Attempt struct {
	Node string
	Err  error
}

// Invocation is the record of one invocation. It may be used again for the
// next one, by one goroutine at a time.
type Invocation struct {
	// Node is the node chosen last, empty when there was none.
	Node string
	// Attempts is how often something was sent, or a connection was tried.
	Attempts int
	// Failovers is how many attempts ended with another node being called for,
	// whether or not one was allowed or left.
	Failovers int
	// Failed are the attempts that led to a failover.
	Failed []Attempt
}

// Do sends req to a node. See Target.Do; the errors are listed above.
func (p *Proxy) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	var inv Invocation
	return p.Invoke(ctx, req, ans, &inv)
}

// Invoke is Do with a record of what happened.
func (p *Proxy) Invoke(ctx context.Context, req *target.Request, ans *target.Answer, inv *Invocation) error {
	*inv = Invocation{Failed: inv.Failed[:0]}
	if p.closed.Load() {
		ans.Reset()
		return &target.Error{Class: target.ClassClosed, Completion: target.CompletionUnsent, Err: errors.New(p.name)}
	}
	if err := ctx.Err(); err != nil {
		// Said before the transaction is looked at: a context that is done ends
		// its transaction, and which of the two came first must not show.
		ans.Reset()
		return canceled(err)
	}
	if p.family.due.Load() != never {
		p.family.recheck(ctx, p.transport)
	}
	var tx *Tx
	var now int64
	if p.pins != nil {
		if tx = FromContext(ctx); tx != nil {
			now = p.pins.now()
		}
	}
	// A node that returns while the loop runs must not keep it running.
	for limit := max(1, p.family.Len()); ; limit-- {
		if limit == 0 {
			ans.Reset()
			return p.unavailable(ErrUnavailable, inv)
		}
		m, hold, err := p.choose(tx, now)
		if err != nil {
			ans.Reset()
			if errors.Is(err, ErrTransactionEnded) && ctx.Err() != nil {
				return canceled(ctx.Err())
			}
			return p.unavailable(err, inv)
		}
		inv.Node = m.name
		err = errNotOffered
		if t := m.targets[p.transport]; t != nil {
			err = t.Do(ctx, req, ans)
		}
		o := classify(err)
		if o != outcomeUnsent {
			inv.Attempts++
		}
		if o == outcomeNotDone {
			// Before the claim is released: whoever picks next must not find it.
			p.family.remove(m)
			inv.Failovers++
			inv.Failed = append(inv.Failed, Attempt{m.name, err})
		}
		mayFailOver := p.settle(m, tx, hold, o)
		if o != outcomeNotDone {
			return err
		}
		if !mayFailOver {
			return p.unavailable(ErrUnavailableInTransaction, inv)
		}
		if ctx.Err() != nil {
			return p.unavailable(ctx.Err(), inv)
		}
	}
}

// errNotOffered is the fault of whoever put the family together.
var errNotOffered error = &target.Error{
	Class: target.ClassClient, Completion: target.CompletionUnsent, Err: errors.New("the node does not offer the transport"),
}

// hold is what an invocation holds of its node until settle.
type hold struct {
	claim        // of the pin, in a transaction
	counted bool // in the member's load
}

// choose picks the node of one attempt. tx is nil outside transactions; now
// is then not used.
func (p *Proxy) choose(tx *Tx, now int64) (*member, hold, error) {
	var h hold
	var m *member
	if tx == nil {
		if m = p.pick(p, p.family.snap.Load()); m == nil {
			return nil, h, ErrUnavailable
		}
	} else {
		var err error
		if m, h.claim, err = p.pins.claim(p, tx, now); err != nil {
			return nil, h, err
		}
	}
	if p.family.counting.Load() {
		m.load.Add(1)
		h.counted = true
	}
	return m, h, nil
}

// settle gives back what choose took, and reports whether a failed
// invocation may go on with another node.
func (p *Proxy) settle(m *member, tx *Tx, h hold, o outcome) bool {
	if h.counted {
		m.load.Add(-1)
	}
	if tx == nil {
		return o == outcomeNotDone
	}
	return p.pins.settle(tx.id, h.claim, o)
}

// unavailable is the error of an invocation that no node answered: cause,
// joined with every attempt's error.
func (p *Proxy) unavailable(cause error, inv *Invocation) error {
	e := &target.Error{Class: target.ClassRefused, Completion: target.CompletionNotReached}
	switch {
	case errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		e.Class = target.ClassCanceled
	case len(inv.Failed) > 0:
		e.Class = target.ClassOf(inv.Failed[len(inv.Failed)-1].Err)
	case errors.Is(cause, ErrTransactionEnded), errors.Is(cause, ErrTooManyTransactions):
		e.Class = target.ClassClient
	}
	if len(inv.Failed) == 0 && !errors.Is(cause, ErrUnavailable) {
		e.Completion = target.CompletionUnsent
	}
	errs := []error{fmt.Errorf("%s: %w", p.family.cfg.Name, cause)}
	for _, a := range inv.Failed {
		if completionOf(a.Err) == target.CompletionNo {
			e.Completion = target.CompletionNo
		}
		errs = append(errs, fmt.Errorf("node %s: %w", a.Node, a.Err))
	}
	e.Err = &joined{errs}
	return e
}

// joined is errors.Join on one line.
type joined struct{ errs []error }

func (j *joined) Error() string {
	texts := make([]string, len(j.errs))
	for i, err := range j.errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (j *joined) Unwrap() []error { return j.errs }

// outcome sorts what became of an attempt by what has to be done about it.
type outcome uint8

const (
	outcomeOK      outcome = iota
	outcomeNotDone         // not reached, or completion No: the node is removed, another may take over
	outcomeReached         // done, perhaps done, or answered with an error: the caller's to deal with
	outcomeUnsent          // nothing left the client: no node is to blame
)

// classify sorts an attempt's error.
func classify(err error) outcome {
	if err == nil {
		return outcomeOK
	}
	if e, plain := err.(*target.Error); plain && e.Err == nil {
		return classifyError(e)
	}
	// A transaction that an inner cluster refused must not be tried elsewhere.
	if errors.Is(err, ErrUnavailableInTransaction) || errors.Is(err, ErrStickyTargetGone) {
		return outcomeReached
	}
	var e *target.Error
	if !errors.As(err, &e) {
		return outcomeReached // unknown: the careful reading
	}
	return classifyError(e)
}

func classifyError(e *target.Error) outcome {
	switch {
	case e.Class == target.ClassClosed:
		return outcomeNotDone // the node was shut down in this process
	case e.Class == target.ClassAddressExhausted:
		return outcomeUnsent // no node is short of ports, the client is
	}
	switch e.Completion {
	case target.CompletionNotReached, target.CompletionNo:
		return outcomeNotDone
	case target.CompletionUnsent:
		return outcomeUnsent
	}
	return outcomeReached
}

// completionOf is the completion that err tells of; Maybe when it does not.
func completionOf(err error) target.Completion {
	var e *target.Error
	if errors.As(err, &e) {
		return e.Completion
	}
	return target.CompletionMaybe
}

func canceled(err error) error {
	return &target.Error{Class: target.ClassCanceled, Completion: target.CompletionUnsent, Err: err}
}
