package remote

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// pconn is a connection of the portable path, with its buffers and with what
// lets the end of a context interrupt it. The connection changes from request
// to request, the rest stays: registering with a context anew for each dial
// and each request cost a quarter of the rate.
type pconn struct {
	net  net.Conn
	tcp  *net.TCPConn
	resp response
	head []byte

	done    <-chan struct{} // of the context that is watched
	stop    func() bool     // ends the watch; nil: there is none
	dialing dialContext

	mu sync.Mutex
	// gen counts the contexts that were watched: the end of an earlier one is
	// nobody's concern.
	gen       int
	interrupt func() // what the end of the context does now; nil: nothing
	expire    func() // interrupts the connection that stands
}

func newPconn() *pconn {
	c := new(pconn)
	c.expire = func() { _ = c.net.SetDeadline(time.Unix(1, 0)) } // failing, it is closed already
	return c
}

// watch makes the end of ctx interrupt what is armed. One context for many
// requests costs nothing after the first.
func (c *pconn) watch(ctx context.Context) {
	done := ctx.Done()
	if done == c.done {
		return
	}
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	c.mu.Lock()
	c.gen++
	gen := c.gen
	c.mu.Unlock()
	if c.done = done; done == nil {
		return
	}
	c.stop = context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.gen == gen && c.interrupt != nil {
			c.interrupt()
		}
	})
}

// arm says what the end of ctx is to do. An error means that it has come
// already, and nothing is armed.
func (c *pconn) arm(ctx context.Context, interrupt func()) error {
	c.mu.Lock()
	c.interrupt = interrupt
	c.mu.Unlock()
	// The watch may have ended before there was something to interrupt.
	if err := ctx.Err(); err != nil {
		c.disarm()
		return err
	}
	return nil
}

// disarm reports whether something was armed.
func (c *pconn) disarm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.interrupt != nil
	c.interrupt = nil
	return was
}

// begin prepares a connection that stands for a request.
func (c *pconn) begin(ctx context.Context, deadline time.Time) error {
	c.watch(ctx)
	if err := c.net.SetDeadline(deadline); err != nil {
		return err
	}
	return c.arm(ctx, c.expire)
}

// dialContext is the context of a dial: the request's, with its deadline, and
// registered through the watch that there is.
type dialContext struct {
	c        *pconn
	parent   context.Context
	deadline time.Time
}

// Deadline is the request's.
func (d *dialContext) Deadline() (time.Time, bool) {
	if d.deadline.IsZero() {
		return d.parent.Deadline()
	}
	return d.deadline, true
}

// Done is never nil: without it the net package heeds no deadline.
func (d *dialContext) Done() <-chan struct{} {
	if done := d.parent.Done(); done != nil {
		return done
	}
	return make(chan struct{})
}

// Err is the parent's.
func (d *dialContext) Err() error { return d.parent.Err() }

// Value is nothing: the context package would find the parent by it and
// register there.
func (d *dialContext) Value(any) any { return nil }

// AfterFunc is what context.AfterFunc calls where there is such a method.
func (d *dialContext) AfterFunc(f func()) (stop func() bool) {
	if d.c.arm(d.parent, f) != nil {
		go f()
		return func() bool { return false }
	}
	return d.c.disarm
}

// idlePool holds kept connections, and what is left of others.
type idlePool struct {
	mu     sync.Mutex
	conns  []*pconn     // alive, last used last
	spare  []*pconn     // without a connection
	skips  atomic.Int64 // requests yet that need not wait for the server's close
	closed bool
}

func (p *idlePool) take() *pconn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.conns); n > 0 {
		c := p.conns[n-1]
		p.conns = p.conns[:n-1]
		return c
	}
	return nil
}

func (p *idlePool) put(c *pconn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.net.Close()
		c.unwatch()
		return
	}
	p.conns = append(p.conns, c)
}

func (p *idlePool) takeSpare() *pconn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.spare); n > 0 {
		c := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return c
	}
	return newPconn()
}

func (p *idlePool) giveSpare(c *pconn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.unwatch()
		return
	}
	p.spare = append(p.spare, c)
}

func (c *pconn) unwatch() {
	if c.stop != nil {
		c.stop()
		c.stop, c.done = nil, nil
	}
}

func (p *idlePool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.conns {
		c.net.Close()
		c.unwatch()
	}
	for _, c := range p.spare {
		c.unwatch()
	}
	p.conns, p.spare = nil, nil
}
