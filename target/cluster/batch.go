package cluster

import (
	"context"
	"sync"
	"sync/atomic"

	"tbl/target"
)

// Batched is a target whose invocations form transactions of a fixed size, in
// the order in which they start: for tools that know no transactions. Those
// of one transaction may overlap, as on parallel workers.
//
// An invocation whose context carries a transaction stays in that one.
type Batched struct {
	target.Target
	size int64

	mu  sync.Mutex
	cur *batch
}

// batch is one transaction of a Batched.
type batch struct {
	tx     *Tx
	issued int64        // guarded by Batched.mu
	open   atomic.Int64 // invocations that have not ended, issued or not
}

// NewBatched wraps t, in general a sticky Proxy, with size invocations to a
// transaction. A size under 1 means 1.
func NewBatched(t target.Target, size int) *Batched {
	return &Batched{Target: t, size: max(1, int64(size))}
}

// Do performs one invocation of the current transaction.
func (b *Batched) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if FromContext(ctx) != nil {
		return b.Target.Do(ctx, req, ans)
	}
	cur := b.enter()
	err := b.Target.Do(&txContext{ctx, cur.tx}, req, ans)
	if cur.open.Add(-1) == 0 {
		cur.tx.End()
	}
	return err
}

func (b *Batched) enter() *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	cur := b.cur
	if cur == nil {
		cur = &batch{}
		_, cur.tx = Begin(context.Background())
		cur.open.Store(b.size)
		b.cur = cur
	}
	cur.issued++
	if cur.issued == b.size {
		b.cur = nil
	}
	return cur
}

// Close ends the transaction that is not full yet, and closes the target.
func (b *Batched) Close() error {
	b.mu.Lock()
	cur := b.cur
	b.cur = nil
	b.mu.Unlock()
	if cur != nil {
		cur.tx.End()
	}
	return b.Target.Close()
}
