package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tbl/target"
	"tbl/target/remote"
)

func isPortBusy(err error) bool { return errors.Is(err, remote.ErrPortBusy) }

// answerAll answers each connection on a listening descriptor, without
// allocating, until one of them starts with 'Q'.
func answerAll(fd int, answer []byte) {
	unix.SetNonblock(fd, false)
	buf := make([]byte, 4096)
	for {
		c, _, errno := unix.Syscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, 0, 0, 0)
		if errno != 0 {
			return
		}
		n, _, _ := unix.Syscall(unix.SYS_READ, c, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
		unix.Syscall(unix.SYS_WRITE, c, uintptr(unsafe.Pointer(&answer[0])), uintptr(len(answer)))
		unix.Syscall(unix.SYS_CLOSE, c, 0, 0)
		if n > 0 && buf[0] == 'Q' {
			return
		}
	}
}

func stopAnswering(t *testing.T, addr string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "Q")
	io.Copy(io.Discard, c)
}

const namespaceEnv = "TBL_TEST_IN_NAMESPACE"

func inNamespace() bool { return os.Getenv(namespaceEnv) != "" }

// With four local ports, held by four silent requests, the fifth has none:
// a class of its own, with the remedy. The test runs itself in a network
// namespace of its own, where four ports are all there are.
func TestAddressExhausted(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), namespaceEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skipf("no namespaces here: %v", err)
	}
	if strings.HasPrefix(string(out), "skip") {
		t.Skip(string(out))
	}
	if err != nil || string(out) != "ok\n" {
		t.Errorf("%v:\n%s", err, out)
	}
}

// exhaustedChild is TestAddressExhausted inside the namespace.
func exhaustedChild() {
	if err := loopbackUp(); err != nil {
		fmt.Println("skip:", err)
		return
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40003"), 0o644); err != nil {
		fmt.Println("skip:", err)
		return
	}
	ln, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		fmt.Println("listen:", err)
		os.Exit(1)
	}
	for _, p := range paths {
		r, err := remote.New(remote.Config{URL: "http://127.0.0.1:8080", Portable: p.portable})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if b := r.Budget(5, 1e6); b.Ports != 4 || len(b.Warnings) == 0 {
			fmt.Printf("%s: budget %+v\n", p.name, b)
			os.Exit(1)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 4)
		var held []net.Conn
		for range 4 {
			go func() {
				var ans target.Answer
				ended <- r.Do(ctx, load(), &ans)
			}()
			c, err := ln.Accept()
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			held = append(held, c)
		}
		var ans target.Answer
		err = r.Do(ctx, load(), &ans)
		var te *target.Error
		if !errors.As(err, &te) || te.Class != target.ClassAddressExhausted || te.Completion != target.CompletionUnsent || !strings.Contains(err.Error(), "--bind") {
			fmt.Printf("%s: %v\n", p.name, err)
			os.Exit(1)
		}
		cancel()
		for range 4 {
			if err := <-ended; target.ClassOf(err) != target.ClassCanceled {
				fmt.Printf("%s: held request: %v\n", p.name, err)
				os.Exit(1)
			}
		}
		for _, c := range held {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
		r.Close()
	}
	fmt.Println("ok")
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// However many requests: no descriptor, no goroutine and no memory is left.
func TestNothingPilesUp(t *testing.T) {
	const workers = 8
	// The first requests are answered when all workers have one under way, so
	// that what the path keeps for each of them stands before it is counted.
	var under atomic.Int32
	s := newScript(t, func(c *net.TCPConn) {
		for under.Add(1); under.Load() < workers; {
			runtime.Gosched()
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 23\r\nConnection: close\r\n\r\n"+good)
	})
	for _, p := range paths {
		for _, reset := range []bool{false, true} {
			r := connect(t, remote.Config{URL: s.url(), Portable: p.portable, LingerReset: reset})
			under.Store(0)
			send := func(each int) {
				r.Clock().Run(workers, func(int) {
					var ans target.Answer
					for range each {
						if err := r.Do(t.Context(), load(), &ans); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			// The server's ends of the last connections are closed a moment later.
			settled := func(want int) int {
				n := openFiles(t)
				for deadline := time.Now().Add(5 * time.Second); n > want && time.Now().Before(deadline); n = openFiles(t) {
					runtime.Gosched()
				}
				return n
			}
			send(50)
			files := settled(0x7FFFFFFF)
			before := heap()
			send(300)
			after := heap()
			if n := settled(files + 2); n > files+2 {
				t.Errorf("%s, reset %v: %d open files, before %d", p.name, reset, n, files)
			}
			if grown := int64(after) - int64(before); grown > 256<<10 {
				t.Errorf("%s, reset %v: %d bytes more on the heap", p.name, reset, grown)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(d)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A connection that does not stand at once, as over any network: it is waited
// for, and not reached when it never comes. The listener's queue is full, so
// that the kernel drops what arrives until somebody accepts.
func TestSlowConnect(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			ln := shortListener(t)
			filler, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer filler.Close()
			url := "http://" + ln.Addr().String()
			var ans target.Answer
			err = connect(t, remote.Config{URL: url, Portable: p.portable, Timeout: 50 * time.Millisecond}).Do(t.Context(), load(), &ans)
			var te *target.Error
			if !errors.As(err, &te) || te.Class != target.ClassTimeout || te.Completion != target.CompletionNotReached {
				t.Fatalf("no connection in time: %v (%+v)", err, te)
			}
			r := connect(t, remote.Config{URL: url, Portable: p.portable, Timeout: 20 * time.Second})
			done := make(chan error, 1)
			go func() { done <- r.Do(t.Context(), load(), &ans) }()
			port := ln.Addr().(*net.TCPAddr).Port
			for deadline := time.Now().Add(10 * time.Second); !synSent(t, port); runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatal("no connection under way")
				}
			}
			// Now the queue is emptied; the kernel tries again after a second.
			go answerEach(ln, 2)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if string(ans.Key) != "k" || ans.Timing.Connect < 100*time.Millisecond || ans.Timing.FirstByte < ans.Timing.Connect || r.Opened() != 1 {
				t.Errorf("key %q, timing %+v, %d opened", ans.Key, ans.Timing, r.Opened())
			}
		})
	}
}

// answerEach accepts n connections and answers what asks.
func answerEach(ln net.Listener, n int) {
	for range n {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			buf := make([]byte, 4096)
			if n, err := c.Read(buf); n > 0 && err == nil {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 23\r\nConnection: close\r\n\r\n"+good)
			}
		}()
	}
}

// shortListener listens with room for one connection in its queue.
func shortListener(t *testing.T) net.Listener {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	ln, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// synSent says that a connection to the port is under way (state 02).
func synSent(t *testing.T, port int) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skip(err)
	}
	return strings.Contains(string(b), fmt.Sprintf("0100007F:%04X 02 ", port))
}
