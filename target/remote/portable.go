package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"tbl/target"
)

// How long the server's close is waited for after the answer: where the
// answer announced it, and where it did not and the server may still do as it
// was asked. It comes right behind the answer, unless the server's machine has
// more to do than it can.
const (
	announcedWait = time.Second
	closeWait     = 50 * time.Millisecond
)

// openSkips is how many requests don't wait for the server's close after it
// failed to come once.
const openSkips = 1024

// portable is Do over the net package.
func (r *Remote) portable(ctx context.Context, req *target.Request, ans *target.Answer) error {
	start := time.Now()
	var deadline time.Time
	if d := r.timeout(req); d > 0 {
		deadline = start.Add(d)
	}
	chosen := req.Conn.Src.Port() != 0
	var c *pconn
	if r.cfg.KeepAlive && !chosen {
		c = r.takeAlive()
	}
	if c == nil {
		var at phase
		var err error
		if c, at, err = r.connect(ctx, req, deadline); err != nil {
			ans.Timing.Total = time.Since(start)
			return classify(ctx, at, chosen, err)
		}
		ans.Timing.Connect = time.Since(start)
	}
	at, eof, err := sending, false, c.begin(ctx, deadline)
	if err == nil {
		at, eof, err = r.exchange(c, req, ans, start)
		c.disarm()
	}
	ans.Timing.Total = time.Since(start)
	if err == nil {
		err = c.resp.fill(req, ans)
	} else {
		err = classify(ctx, at, chosen, err)
	}
	if err == nil && !eof && r.cfg.KeepAlive && !c.resp.closes {
		r.idle.put(c)
		return nil
	}
	ans.Timing.ServerClosed = r.finish(c, eof, err == nil)
	r.idle.giveSpare(c)
	return err
}

// takeAlive returns a kept connection that the server has not closed.
func (r *Remote) takeAlive() *pconn {
	for {
		c := r.idle.take()
		if c == nil || quiet(c.tcp) {
			return c
		}
		c.net.Close()
		c.net, c.tcp = nil, nil
		r.idle.giveSpare(c)
	}
}

// connect opens a connection, with its TLS session where one is needed.
func (r *Remote) connect(ctx context.Context, req *target.Request, deadline time.Time) (*pconn, phase, error) {
	c := r.idle.takeSpare()
	c.watch(ctx)
	tcp, err := r.dial(ctx, c, req.Conn.Src, deadline)
	if err != nil {
		r.idle.giveSpare(c)
		return nil, connecting, err
	}
	r.opened.Add(1)
	c.net, c.tcp = tcp, tcp
	if r.tls != nil {
		session := tls.Client(tcp, r.tls)
		_ = tcp.SetDeadline(deadline) // fails on a closed connection only
		if err := session.HandshakeContext(ctx); err != nil {
			tcp.Close()
			c.net, c.tcp = nil, nil
			r.idle.giveSpare(c)
			return nil, shaking, err
		}
		c.net = session
	}
	return c, sending, nil
}

// dial connects to the address in use, or to the first of the host's that
// accepts.
func (r *Remote) dial(ctx context.Context, c *pconn, src netip.AddrPort, deadline time.Time) (*net.TCPConn, error) {
	addrs, err := r.destinations(ctx)
	if err != nil {
		return nil, err
	}
	c.dialing = dialContext{c: c, parent: ctx, deadline: deadline}
	var errs []error
	for _, dst := range addrs {
		var tcp *net.TCPConn
		if tcp, err = r.dialOne(&c.dialing, src, dst); err == nil {
			r.addrs.keep(dst)
			return tcp, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (r *Remote) dialOne(ctx context.Context, src, dst netip.AddrPort) (*net.TCPConn, error) {
	local := r.source(src, dst)
	d := net.Dialer{KeepAlive: -1, ControlContext: dialControl(local)}
	if local.IsValid() {
		return d.DialTCP(ctx, "tcp", local, dst)
	}
	// DialTCP would bind to the zero address, and with it to a port of its
	// own choice that no other destination can then share.
	c, err := d.DialContext(ctx, "tcp", dst.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

func (r *Remote) destinations(ctx context.Context) ([]netip.AddrPort, error) {
	if a, ok := r.addrs.known(); ok {
		return []netip.AddrPort{a}, nil
	}
	return r.addrs.lookup(ctx)
}

// source is the local address of the next connection: the caller's choice
// first, then the bound addresses in turn; the zero value is the system's.
func (r *Remote) source(src, dst netip.AddrPort) netip.AddrPort {
	addr := src.Addr()
	if (!addr.IsValid() || addr.IsUnspecified()) && len(r.cfg.Binds) > 0 {
		addr = r.cfg.Binds[int((r.nextBind.Add(1)-1)%uint64(len(r.cfg.Binds)))]
	}
	switch {
	case addr.IsValid() && !addr.IsUnspecified():
		return netip.AddrPortFrom(addr.Unmap(), src.Port())
	case src.Port() == 0:
		return netip.AddrPort{}
	case dst.Addr().Is4():
		return netip.AddrPortFrom(netip.IPv4Unspecified(), src.Port())
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), src.Port())
}

// exchange sends req and reads the answer into c.resp. eof says that the
// server's close was seen.
func (r *Remote) exchange(c *pconn, req *target.Request, ans *target.Answer, start time.Time) (at phase, eof bool, err error) {
	c.resp.reset()
	c.resp.max = r.cfg.MaxAnswer
	c.head = r.appendRequest(c.head[:0], req)
	sendErr := c.send(body(req))
	// A server may refuse and close before it has read everything: its answer
	// says more than the failed write.
	for first := true; ; first = false {
		if err := c.resp.room(); err != nil {
			return receiving, eof, err
		}
		n, err := c.net.Read(c.resp.buf[len(c.resp.buf):cap(c.resp.buf)])
		if n > 0 && first {
			ans.Timing.FirstByte = time.Since(start)
		}
		c.resp.buf = c.resp.buf[:len(c.resp.buf)+n]
		// A TLS session that ends without its closing alert is a close too: what
		// was to come has a length or an end of its own.
		eof = err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !eof {
			// What was read before the failure may be the whole answer.
			if done, _ := c.resp.step(false); done && n > 0 {
				return receiving, false, nil
			}
			if sendErr != nil {
				return sending, false, sendErr
			}
			return receiving, false, err
		}
		done, stepErr := c.resp.step(eof)
		if stepErr != nil && sendErr != nil {
			return sending, eof, sendErr
		}
		if done || stepErr != nil {
			return receiving, eof, stepErr
		}
	}
}

// send writes the head and the body.
func (c *pconn) send(body []byte) error {
	if len(body) == 0 {
		_, err := c.net.Write(c.head)
		return err
	}
	parts := net.Buffers{c.head, body}
	_, err := parts.WriteTo(c.net)
	return err
}

// minRead is the least room for a read.
const minRead = 2 << 10

// room makes space for a read: a little at first, then twice as much.
func (p *response) room() error {
	if cap(p.buf)-len(p.buf) >= minRead {
		return nil
	}
	if int64(len(p.buf)) > p.max+maxHead+p.max/8 {
		return errTooLarge
	}
	grown := make([]byte, len(p.buf), max(2*minRead, 2*cap(p.buf)))
	copy(grown, p.buf)
	p.buf = grown
	return nil
}

// maxSpare is the largest buffer that is kept for the next request.
const maxSpare = 32 << 10

// finish ends the connection: after a whole answer orderly, and behind the
// server's own close where one is coming. It reports whether that came first.
func (r *Remote) finish(c *pconn, eof, whole bool) (serverClosed bool) {
	if whole && !eof && !r.cfg.LingerReset {
		eof = r.awaitClose(c)
	}
	if r.cfg.LingerReset {
		_ = c.tcp.SetLinger(0) // failing, the close is an orderly one
		c.tcp.Close()
	} else {
		c.net.Close()
	}
	c.net, c.tcp = nil, nil
	if cap(c.resp.buf) > maxSpare {
		c.resp.buf = nil
	}
	if cap(c.head) > maxSpare {
		c.head = nil
	}
	return eof
}

// closeWait is how long to wait for the server's close after this answer.
func (p *response) closeWait() time.Duration {
	if p.closes {
		return announcedWait
	}
	return closeWait
}

// awaitClose waits a little for the server's close. A server that keeps its
// connections open is found out once and then left alone for a while.
func (r *Remote) awaitClose(c *pconn) bool {
	if r.idle.skips.Load() > 0 {
		r.idle.skips.Add(-1)
		return false
	}
	if c.tcp.SetReadDeadline(time.Now().Add(c.resp.closeWait())) != nil {
		return false
	}
	if err := c.resp.room(); err != nil {
		return false
	}
	tail := c.resp.buf[len(c.resp.buf):cap(c.resp.buf)]
	_, err := c.tcp.Read(tail)
	if err == io.EOF {
		return true
	}
	if err != nil {
		r.idle.skips.Store(openSkips)
	}
	return false
}
