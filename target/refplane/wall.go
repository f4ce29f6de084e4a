package refplane

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"tbl/target"
	"tbl/target/refplane/table"
)

// mailbox is how others reach a core's thread: clients with requests, other
// cores with single commands. Both queues are stacks that the core takes over
// whole; a sleeping core is woken through wake.
type mailbox struct {
	calls  atomic.Pointer[call]
	orders atomic.Pointer[order]
	asleep atomic.Bool
	wake   chan struct{} // one token at most: only who turned asleep off sends
	sweep  atomic.Bool   // the second has changed and there are timers
	timers atomic.Bool   // the wheel holds records; read by the ticker
	quit   atomic.Bool

	todo  *call // taken over, oldest first; the core's own
	mine  order // the command this core has sent; one at a time
	alarm *time.Timer
	naps  uint32
}

// call is a client's request on its way through a core.
type call struct {
	next  *call
	req   *target.Request
	ans   *target.Answer
	err   error
	state atomic.Uint32
	done  chan struct{} // one token, when served
}

// The states of a call. The client may only leave one that is waiting.
const (
	callWaiting uint32 = iota
	callServed         // or being served
	callLeft
)

// order is a command from one core to another.
type order struct {
	next *order
	from *core
	cmd  *table.Command
	done atomic.Bool
}

// post puts a call into the mailbox.
func (c *core) post(cl *call) {
	b := &c.box
	for {
		head := b.calls.Load()
		cl.next = head
		if b.calls.CompareAndSwap(head, cl) {
			break
		}
	}
	c.rouse()
}

// rouse wakes the core if it sleeps.
func (c *core) rouse() {
	b := &c.box
	if b.asleep.Load() && b.asleep.CompareAndSwap(true, false) {
		b.wake <- struct{}{}
	}
}

// sleep waits until somebody rouses the core, for at most d if that is
// positive. Idle says, with asleep already on, that there is still nothing to
// do: whoever adds work afterwards sees asleep.
func (c *core) sleep(d time.Duration, idle func(c *core) bool) {
	b := &c.box
	if b.naps++; b.naps%napsPerYield == 0 {
		runtime.Gosched()
	}
	b.asleep.Store(true)
	if !idle(c) {
		if !b.asleep.CompareAndSwap(true, false) {
			<-b.wake
		}
		return
	}
	if d <= 0 {
		<-b.wake
		return
	}
	if b.alarm == nil {
		b.alarm = time.NewTimer(d)
	} else {
		b.alarm.Reset(d)
	}
	select {
	case <-b.wake:
	case <-b.alarm.C:
		if !b.asleep.CompareAndSwap(true, false) {
			<-b.wake
		}
	}
	b.alarm.Stop()
}

// napsPerYield is how often a core sleeps before it goes to the end of the
// scheduler's queue once. Two cores that wake each other in turn would
// otherwise pass one processor to and fro for ever, ahead of all others.
const napsPerYield = 16

func nothingToDo(c *core) bool {
	b := &c.box
	return b.calls.Load() == nil && b.orders.Load() == nil && !b.sweep.Load() && !b.quit.Load()
}

func noAnswer(c *core) bool { return !c.box.mine.done.Load() && c.box.orders.Load() == nil }

func noOrders(c *core) bool { return c.box.orders.Load() == nil }

// Tidying is done in steps of so many records: the first when there is nothing
// else to do, the second between requests.
const (
	idleStep = 256
	busyStep = 64
)

// run is the core's life on a thread of its own. The thread is what makes the
// cost of reaching another core real: waking it takes the operating system.
func (c *core) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer c.p.threads.Done()
	b := &c.box
	behind := false
	for {
		c.serveOrders()
		cl := c.nextCall()
		if cl != nil {
			c.now = c.p.unix()
			cl.err = c.serve(cl.req, cl.ans)
			cl.done <- struct{}{}
		} else if b.quit.Load() {
			return
		}
		if b.sweep.Load() {
			b.sweep.Store(false)
			c.now = c.p.unix()
		}
		if behind || c.store.Behind(c.now) {
			step := busyStep
			if cl == nil {
				step = idleStep
			}
			behind = !c.store.Tidy(c.now, step)
		}
		if t := c.store.Timed(); t != b.timers.Load() {
			b.timers.Store(t)
		}
		if cl == nil && !behind {
			c.sleep(0, nothingToDo)
		}
	}
}

// nextCall is the oldest call that its client still waits for, or nil.
func (c *core) nextCall() *call {
	b := &c.box
	for {
		if b.todo == nil {
			for cl := b.calls.Swap(nil); cl != nil; {
				next := cl.next
				cl.next = b.todo
				b.todo = cl
				cl = next
			}
			if b.todo == nil {
				return nil
			}
		}
		cl := b.todo
		b.todo = cl.next
		cl.next = nil
		if cl.state.CompareAndSwap(callWaiting, callServed) {
			return cl
		}
		cl.req, cl.ans = nil, nil
		c.p.pool.Put(cl)
	}
}

// serveOrders carries out what other cores have sent. Orders wait for nothing
// and nobody, which is why cores that wait for each other can't lock up.
func (c *core) serveOrders() {
	b := &c.box
	if b.orders.Load() == nil {
		return
	}
	var list *order
	for o := b.orders.Swap(nil); o != nil; {
		next := o.next
		o.next = list
		list = o
		o = next
	}
	for o := list; o != nil; {
		next, from := o.next, o.from
		c.execHere(o.cmd, from.now)
		o.done.Store(true) // o is its sender's again
		from.rouse()
		o = next
	}
}

// between is for the middle of long work: others' orders, the time, expiry.
func (c *core) between() {
	c.serveOrders()
	c.now = c.p.unix()
	if c.store.Behind(c.now) {
		c.store.Tidy(c.now, busyStep)
	}
}

// handOff sends cmd to its owner and waits, serving orders meanwhile.
func (c *core) handOff(owner *core, cmd *table.Command) {
	c.order(owner, cmd)
	w := c.meter.wait(c.p)
	for !c.box.mine.done.Load() {
		c.serveOrders()
		c.sleep(0, noAnswer)
	}
	if d := c.p.cfg.HandoffDelay; d > 0 {
		c.pause(d)
	}
	c.meter.waited(c.p, w)
}

// order puts cmd into its owner's mailbox; mine.done tells when it is carried
// out.
func (c *core) order(owner *core, cmd *table.Command) {
	o := &c.box.mine
	o.cmd = cmd
	o.from = c
	o.done.Store(false)
	for {
		head := owner.box.orders.Load()
		o.next = head
		if owner.box.orders.CompareAndSwap(head, o) {
			break
		}
	}
	owner.rouse()
}

// pause lets d pass, serving orders meanwhile.
func (c *core) pause(d time.Duration) {
	if c.p.model != nil {
		c.spent += float64(d) / float64(c.p.cfg.Click)
		return
	}
	for end := c.p.elapsed() + d; ; {
		c.serveOrders()
		left := end - c.p.elapsed()
		if left <= 0 {
			return
		}
		c.sleep(left, noOrders)
	}
}

// doWall sends the request through the core's mailbox.
func (p *Plane) doWall(ctx context.Context, c *core, req *target.Request, ans *target.Answer) error {
	cl := p.pool.Get().(*call)
	cl.req, cl.ans, cl.err = req, ans, nil
	cl.state.Store(callWaiting)
	c.post(cl)
	if quit := ctx.Done(); quit == nil {
		<-cl.done
	} else {
		select {
		case <-cl.done:
		case <-quit:
			if cl.state.CompareAndSwap(callWaiting, callLeft) {
				return &target.Error{Class: target.ClassCanceled, Completion: target.CompletionNo, Err: ctx.Err()}
			}
			<-cl.done
		}
	}
	err := cl.err
	cl.req, cl.ans, cl.err = nil, nil, nil
	p.pool.Put(cl)
	return err
}

// tick wakes, once a second, the cores whose entries may have expired.
func (p *Plane) tick() {
	defer p.threads.Done()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
		}
		for _, c := range p.cores {
			if c.box.timers.Load() {
				c.box.sweep.Store(true)
				c.rouse()
			}
		}
	}
}
