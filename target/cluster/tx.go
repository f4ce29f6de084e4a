package cluster

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// TxID identifies a transaction. It is a plain value: whoever knows it can
// take part, in this process or in another.
type TxID struct{ hi, lo uint64 }

// NewTxID is the id made of two words. They should be random: the pin store
// spreads ids by their lower bits.
func NewTxID(hi, lo uint64) TxID { return TxID{hi, lo} }

// String is the id as 32 hexadecimal digits.
func (id TxID) String() string { return fmt.Sprintf("%016x%016x", id.hi, id.lo) }

// ParseTxID reads what String wrote.
func ParseTxID(s string) (TxID, error) {
	var b [16]byte
	if len(s) != 32 {
		return TxID{}, fmt.Errorf("transaction id %q: want 32 hexadecimal digits", s)
	}
	if _, err := hex.Decode(b[:], []byte(s)); err != nil {
		return TxID{}, fmt.Errorf("transaction id %q: want 32 hexadecimal digits", s)
	}
	var id TxID
	for i := range 8 {
		id.hi = id.hi<<8 | uint64(b[i])
		id.lo = id.lo<<8 | uint64(b[8+i])
	}
	return id, nil
}

// Tx is a running transaction, carried by a context. All methods are safe
// for concurrent use.
type Tx struct {
	id    TxID
	first atomic.Pointer[Pins] // the store that holds the pin; more than one is rare
	slot  atomic.Uint32        // where first keeps it; 0: not known

	mu    sync.Mutex
	ended bool
	more  []*Pins
	stop  func() bool // takes back the wait for the context
}

// txContext is a context with a transaction, in one allocation.
type txContext struct {
	context.Context
	tx *Tx // nil hides an outer one
}

type txKey struct{}

// Value finds the transaction, and everything else further out.
func (c *txContext) Value(key any) any {
	if _, ok := key.(txKey); ok {
		return c.tx
	}
	return c.Context.Value(key)
}

// Begin starts a transaction: every invocation made with the context it
// returns stays on one node, as far as the proxies are sticky. A transaction
// that ctx already carries is not continued but left aside; to take part in
// it, a node passes the context on that its request came with.
//
// The transaction lasts until End, or until ctx is cancelled or times out.
func Begin(ctx context.Context) (context.Context, *Tx) {
	return Join(ctx, TxID{rand.Uint64(), rand.Uint64()})
}

// Join takes part in a transaction that was begun elsewhere and whose id was
// handed over. Only one participant should End it.
func Join(ctx context.Context, id TxID) (context.Context, *Tx) {
	tx := &Tx{id: id}
	if ctx.Done() != nil {
		// Under the lock: a context that is already done ends tx at once.
		tx.mu.Lock()
		tx.stop = context.AfterFunc(ctx, tx.End)
		tx.mu.Unlock()
	}
	return &txContext{ctx, tx}, tx
}

// Within runs fn in a transaction of its own and ends it whatever becomes of
// fn: commit, failed commit, rollback or panic.
func Within(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, tx := Begin(ctx)
	defer tx.End()
	return fn(ctx)
}

// FromContext is the transaction that ctx carries, nil when there is none.
func FromContext(ctx context.Context) *Tx {
	if c, ok := ctx.(*txContext); ok {
		return c.tx
	}
	tx, _ := ctx.Value(txKey{}).(*Tx)
	return tx
}

// withoutTx hides a transaction from what is done with ctx.
func withoutTx(ctx context.Context) context.Context {
	if FromContext(ctx) == nil {
		return ctx
	}
	return &txContext{Context: ctx}
}

// ID is the transaction's identity.
func (t *Tx) ID() TxID { return t.id }

// End forgets the transaction's pin and marks everywhere. It is to be called
// on commit and on rollback, whether they succeeded or not; a second call
// does nothing. Invocations that come later fail with ErrTransactionEnded.
func (t *Tx) End() {
	t.mu.Lock()
	t.ended = true
	stop, first, more := t.stop, t.first.Load(), t.more
	t.stop, t.more = nil, nil
	t.mu.Unlock()
	if stop != nil {
		stop()
	}
	if first != nil {
		first.End(t.id)
	}
	for _, p := range more {
		p.End(t.id)
	}
}

// attached says that the transaction already has, or had, a record in p.
func (t *Tx) attached(p *Pins) bool {
	if t.first.Load() == p {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range t.more {
		if p == q {
			return true
		}
	}
	return false
}

// attach makes End reach p. It reports false when the transaction has ended.
func (t *Tx) attach(p *Pins) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return false
	case t.first.Load() == nil:
		t.first.Store(p)
	default:
		t.more = append(t.more, p)
	}
	return true
}
