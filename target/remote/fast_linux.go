package remote

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tbl/target"
)

// The fast path. Nearly all of a small request's cost is in the kernel, so it
// makes the fewest system calls: a descriptor is used again for one
// connection after the other. After the answer, connect to AF_UNSPEC dissolves
// the old association; the next connect gets a source port of its own, without
// socket, close or epoll_ctl. It was measured against the obvious ways.
//
// Each request runs in its caller's goroutine on a slot: a descriptor, its
// buffers, and a channel on which the poller says that something has happened
// to the descriptor. Such a token may be stale; it only means "look again".
// All descriptors are edge-triggered members of one epoll set, which is itself
// watched by the runtime's poller, so that nobody blocks a thread.

// fastPath holds the slots of one Remote.
type fastPath struct {
	r  *Remote
	on bool

	mu    sync.Mutex
	slots []*slot // by index; all ever made
	free  []*slot // a queue, longest unused first
	first int     // of free
	epfd  *os.File
	raw   syscall.RawConn
	ended chan struct{} // closed when the poller has returned
	round atomic.Uint64 // how often the poller has looked
	shut  bool
}

// init decides whether the fast path can be taken at all.
func (f *fastPath) init(r *Remote) {
	f.r = r
	f.on = !r.cfg.Portable && r.tls == nil && !r.cfg.KeepAlive
}

func (f *fastPath) enabled() bool { return f.on }

// takes says that req is for the fast path: one whose address is known, that
// has no body and no source port of its own. Large bodies gain nothing here.
func (f *fastPath) takes(req *target.Request) bool {
	if !f.on || req.Conn.Src.IsValid() || len(body(req)) > 0 {
		return false
	}
	_, known := f.r.addrs.known()
	return known
}

// slot is what one request at a time uses.
type slot struct {
	f     *fastPath
	index int32
	fd    int // -1: none

	wake  chan struct{} // a token: look again
	timer *time.Timer
	// timerAt is when the timer fires, zero when it isn't armed. It is left
	// armed from request to request and often fires early: arming it anew each
	// time would cost more.
	timerAt time.Time
	fired   atomic.Bool

	// hup is the latest of the poller's rounds that found the descriptor's
	// other side closed, since the one that may have begun before this
	// connection: what the poller holds of an earlier one doesn't count.
	hup   atomic.Uint64
	since uint64

	done <-chan struct{} // of the context that may kick the slot
	// unctx ends that; nil: there is none.
	unctx  func() bool
	wantsW bool // registered for writability too

	addr    unix.RawSockaddrInet6 // destination, either family
	addrLen uintptr

	resp response
	head []byte
}

// kick makes the slot's request look again. Never blocks.
func (s *slot) kick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take returns a slot for one request. With several source addresses there
// are at least as many slots, used in turn, each with one of them.
func (f *fastPath) take() (*slot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		return nil, errClosed
	}
	if f.epfd == nil {
		if err := f.start(); err != nil {
			return nil, err
		}
	}
	if f.first < len(f.free) && len(f.slots) >= len(f.r.cfg.Binds) {
		s := f.free[f.first]
		f.first++
		return s, nil
	}
	s := &slot{f: f, index: int32(len(f.slots)), fd: -1, wake: make(chan struct{}, 1)}
	s.timer = time.AfterFunc(time.Hour, func() { s.fired.Store(true); s.kick() })
	s.timer.Stop()
	s.resp.max = f.r.cfg.MaxAnswer
	f.slots = append(f.slots, s)
	return s, nil
}

func (f *fastPath) give(s *slot) {
	if cap(s.resp.buf) > maxSpare {
		s.resp.buf = nil
	}
	if cap(s.head) > maxSpare {
		s.head = nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		s.drop()
		return
	}
	if f.first > len(f.free)/2 && f.first > 64 {
		f.free = f.free[:copy(f.free, f.free[f.first:])]
		f.first = 0
	}
	f.free = append(f.free, s)
}

// start makes the epoll set and its poller. Called under mu.
func (f *fastPath) start() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll_create: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // what makes the runtime watch it
		unix.Close(fd)
		return fmt.Errorf("epoll: %w", err)
	}
	file := os.NewFile(uintptr(fd), "epoll")
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return fmt.Errorf("epoll: %w", err)
	}
	f.epfd, f.raw, f.ended = file, raw, make(chan struct{})
	go f.poll(f.ended)
	return nil
}

// poll hands out tokens until the epoll set is closed.
func (f *fastPath) poll(ended chan<- struct{}) {
	defer close(ended)
	var events [128]unix.EpollEvent
	_ = f.raw.Read(func(fd uintptr) bool { // an error means that it was closed
		for {
			round := f.round.Add(1)
			n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&events[0])),
				uintptr(len(events)), 0, 0, 0)
			if errno != 0 {
				return errno != unix.EINTR
			}
			f.mu.Lock()
			for _, e := range events[:n] {
				s := f.slots[e.Fd]
				// A reset shows as the other side's close too, among others.
				if e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) == unix.EPOLLRDHUP {
					s.hup.Store(round)
				}
				s.kick()
			}
			f.mu.Unlock()
			if int(n) < len(events) {
				return false
			}
		}
	})
}

// close ends the poller, and the requests under way with ClassClosed.
func (f *fastPath) close() {
	f.mu.Lock()
	if f.shut {
		f.mu.Unlock()
		return
	}
	f.shut = true
	for _, s := range f.free[f.first:] {
		s.drop()
	}
	for _, s := range f.slots {
		s.kick()
	}
	epfd, ended := f.epfd, f.ended
	f.mu.Unlock()
	if epfd != nil {
		epfd.Close()
		<-ended
	}
}

// drop closes the slot's descriptor and lets go of all that could call it.
func (s *slot) drop() {
	s.closeFD()
	s.timer.Stop()
	if s.unctx != nil {
		s.unctx()
		s.unctx = nil
	}
}

func (s *slot) closeFD() {
	if s.fd >= 0 {
		unix.Close(s.fd) // leaves the epoll set by itself
		s.fd = -1
	}
}
