package remote

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tbl/target"
)

// do is Do on the fast path.
func (f *fastPath) do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	start := time.Now()
	s, err := f.take()
	if err != nil {
		if errors.Is(err, errClosed) {
			return &target.Error{Class: target.ClassClosed, Completion: target.CompletionUnsent, Err: err}
		}
		return classify(ctx, connecting, false, err)
	}
	defer f.give(s)
	var deadline time.Time
	if d := f.r.timeout(req); d > 0 {
		deadline = start.Add(d)
	}
	s.watch(ctx)
	at, eof, err := s.exchange(ctx, req, ans, start, deadline)
	if err != nil {
		ans.Timing.Total = time.Since(start)
		s.dissolve()
		if errors.Is(err, errClosed) {
			return &target.Error{Class: target.ClassClosed, Completion: target.CompletionMaybe, Err: err}
		}
		return classify(ctx, at, false, err)
	}
	if err = s.resp.fill(req, ans); err != nil {
		ans.Timing.ServerClosed = eof
		s.finish(ctx, eof)
		return err
	}
	ans.Timing.ServerClosed = s.finish(ctx, eof)
	return nil
}

// watch makes the end of ctx kick the slot. One context for many requests
// costs nothing after the first.
func (s *slot) watch(ctx context.Context) {
	done := ctx.Done()
	if done == s.done {
		return
	}
	if s.unctx != nil {
		s.unctx()
		s.unctx = nil
	}
	s.done = done
	if done != nil {
		s.unctx = context.AfterFunc(ctx, s.kick)
	}
}

var errNotInTime = os.ErrDeadlineExceeded

// wait returns when there may be news of the descriptor, or the error that
// ends the wait.
func (s *slot) wait(ctx context.Context, deadline time.Time) error {
	if !deadline.IsZero() && (s.timerAt.IsZero() || s.timerAt.After(deadline)) {
		s.timer.Reset(time.Until(deadline))
		s.timerAt = deadline
	}
	<-s.wake
	if s.f.r.closed.Load() {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.fired.Load() {
		// Perhaps an earlier request's moment only; and the same token may
		// stand for the descriptor's news too.
		s.fired.Store(false)
		s.timerAt = time.Time{}
		if !deadline.IsZero() && !time.Now().Before(deadline) {
			return errNotInTime
		}
	}
	return nil
}

// exchange connects, sends and reads the answer. eof says that the server's
// close was seen too.
func (s *slot) exchange(ctx context.Context, req *target.Request, ans *target.Answer, start, deadline time.Time) (at phase, eof bool, err error) {
	s.resp.reset()
	s.head = s.f.r.appendRequest(s.head[:0], req)
	if err := s.connect(); err != nil {
		return connecting, false, err
	}
	// On the same machine, and only there, the connection stands already,
	// whatever connect says: sending shows it.
	stands := time.Now()
	at, rest := connecting, s.head
	for len(rest) > 0 {
		n, errno := write(s.fd, rest)
		switch {
		case errno == 0:
			if at == connecting {
				at = sending
				s.f.r.opened.Add(1)
				ans.Timing.Connect = stands.Sub(start)
			}
			rest = rest[n:]
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			if err := s.wantWritable(); err != nil {
				return at, false, err
			}
			if err := s.wait(ctx, deadline); err != nil {
				return at, false, err
			}
			stands = time.Now()
		default:
			if at == connecting && errno != unix.ECONNREFUSED && s.reached(errno) {
				at = sending
			}
			return at, false, errno
		}
	}
	at = receiving
	for first := true; ; {
		if err := s.wait(ctx, deadline); err != nil {
			return at, false, err
		}
		// All that is there, until there is no more: the edge comes once.
		for {
			if err := s.resp.room(); err != nil {
				return at, false, err
			}
			buf, over := s.resp.buf, s.over()
			n, errno := read(s.fd, buf[len(buf):cap(buf)])
			if errno == unix.EAGAIN {
				break
			}
			if errno == unix.EINTR {
				continue
			}
			if errno != 0 {
				return at, false, errno
			}
			eof = n == 0
			if !eof && first {
				first = false
				ans.Timing.FirstByte = time.Since(start)
				// The whole answer, mostly: one look at the clock serves both.
				ans.Timing.Total = ans.Timing.FirstByte
			} else {
				ans.Timing.Total = time.Since(start)
			}
			s.resp.buf = buf[:len(buf)+n]
			done, err := s.resp.step(eof)
			if done || err != nil {
				// A read that left room has taken all there was before the close.
				return at, eof || over && n < cap(buf)-len(buf), err
			}
		}
	}
}

// over says that the poller has seen the server's close. False may also mean
// that it was not seen yet.
func (s *slot) over() bool { return s.hup.Load() > s.since }

// reached tells a connection that was reset after it stood from one that
// never did.
func (s *slot) reached(errno unix.Errno) bool {
	switch errno {
	case unix.ECONNRESET, unix.EPIPE:
		s.f.r.opened.Add(1)
		return true
	}
	return false
}

// wantWritable registers for writability, which a connection over a network
// needs and one on this machine does not. It stays registered.
func (s *slot) wantWritable() error {
	if s.wantsW {
		return nil
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: s.index}
	if err := s.control(unix.EPOLL_CTL_MOD, &ev); err != nil {
		return err
	}
	s.wantsW = true
	return nil
}

func (s *slot) control(op int, ev *unix.EpollEvent) error {
	var err error
	if cerr := s.f.raw.Control(func(epfd uintptr) { err = unix.EpollCtl(int(epfd), op, s.fd, ev) }); cerr != nil {
		return errClosed
	}
	if err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// connect starts a connection, on the descriptor that is there or a new one.
func (s *slot) connect() error {
	if s.fd < 0 {
		if err := s.open(); err != nil {
			return err
		}
	}
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(s.fd), uintptr(unsafe.Pointer(&s.addr)), s.addrLen)
		switch errno {
		case 0, unix.EINPROGRESS:
			s.since = s.f.round.Load()
			return nil
		case unix.EINTR:
			continue
		}
		return errno
	}
}

// open makes the slot's descriptor: not blocking, bound to its source
// address, a member of the epoll set.
func (s *slot) open() error {
	dst, _ := s.f.r.addrs.known()
	family := unix.AF_INET6
	if dst.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	s.fd, s.wantsW = fd, false
	if err := s.prepare(dst); err != nil {
		s.closeFD()
		return err
	}
	return nil
}

func (s *slot) prepare(dst netip.AddrPort) error {
	if n := len(s.f.r.cfg.Binds); n > 0 {
		addr := s.f.r.cfg.Binds[int(s.index)%n].Unmap()
		if err := bindOption(s.fd, false); err != nil {
			return fmt.Errorf("bind %s: %w", addr, err)
		}
		var sa unix.Sockaddr
		if addr.Is4() {
			sa = &unix.SockaddrInet4{Addr: addr.As4()}
		} else {
			sa = &unix.SockaddrInet6{Addr: addr.As16()}
		}
		if err := unix.Bind(s.fd, sa); err != nil {
			return fmt.Errorf("bind %s: %w", addr, err)
		}
	}
	if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("tcp_nodelay: %w", err)
	}
	// On the connecting side this holds back the handshake's last packet until
	// the request can go with it: a packet less, and the server is woken once.
	// Without it all works as well.
	_ = unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 1)
	zone, err := zoneIndex(dst.Addr())
	if err != nil {
		return err
	}
	s.addr, s.addrLen = rawAddr(dst, zone)
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: s.index}
	return s.control(unix.EPOLL_CTL_ADD, &ev)
}

// finish ends the connection after a whole answer and reports whether the
// server's close came first. An orderly end waits for that close where one is
// coming; a reset waits for nothing.
func (s *slot) finish(ctx context.Context, eof bool) (serverClosed bool) {
	if s.f.r.cfg.LingerReset {
		s.dissolve()
		return eof
	}
	skips := &s.f.r.idle.skips
	if !eof {
		if skips.Load() > 0 {
			skips.Add(-1)
		} else if eof = s.awaitEOF(ctx, s.resp.closeWait()); !eof {
			skips.Store(openSkips)
		}
	}
	if !eof {
		// Ours goes first. Dissolving would be a reset; so the kernel is left
		// with the rest, as after any close.
		s.closeFD()
		return false
	}
	shutdown(s.fd) // failing, there is nothing left to end
	s.dissolve()
	return true
}

// awaitEOF reads what may still come until the server's close, for at most d.
func (s *slot) awaitEOF(ctx context.Context, d time.Duration) bool {
	var deadline time.Time
	for {
		if s.resp.room() != nil {
			return false
		}
		buf := s.resp.buf
		n, errno := read(s.fd, buf[len(buf):cap(buf)])
		switch {
		case errno == unix.EAGAIN:
			if deadline.IsZero() {
				deadline = time.Now().Add(d)
			}
			if s.wait(ctx, deadline) != nil {
				return false
			}
		case errno == unix.EINTR:
		case errno != 0:
			return false
		case n == 0:
			return true
		}
	}
}

// dissolve frees the descriptor from its connection; one that is not at its
// end is reset. Where that fails the descriptor is closed.
func (s *slot) dissolve() {
	if s.fd < 0 {
		return
	}
	unspec := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	_, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(s.fd), uintptr(unsafe.Pointer(&unspec)), unsafe.Sizeof(unspec))
	if errno != 0 {
		s.closeFD()
	}
}

func write(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

func read(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
	if errno != 0 {
		n = 0
	}
	return int(n), errno
}

func shutdown(fd int) { unix.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0) }
