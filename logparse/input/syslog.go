package input

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// syslogBuffer is what is asked of the kernel for a UDP socket: a burst of
// messages that finds no room there is lost, and nobody is told.
const syslogBuffer = 8 << 20

// maxMessage is the longest message that is kept whole.
const maxMessage = 8 << 20

// listener takes syslog messages: one per UDP datagram, or lines over TCP, or
// over TCP with their length in front (RFC 6587).
type listener struct {
	*feeder
	packet net.PacketConn
	stream net.Listener
	mu     sync.Mutex
	conns  map[net.Conn]bool // nil: closed
}

func listenSyslog(url string) (*listener, error) {
	network, addr, ok := strings.Cut(url, "://")
	if !ok || network != "udp" && network != "tcp" {
		return nil, errors.New(`want "udp://host:port" or "tcp://host:port"`)
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, err
	}
	l := &listener{feeder: newFeeder(), conns: map[net.Conn]bool{}}
	var err error
	if network == "udp" {
		if l.packet, err = net.ListenPacket("udp", addr); err != nil {
			return nil, err
		}
		if u, ok := l.packet.(*net.UDPConn); ok {
			_ = u.SetReadBuffer(syslogBuffer)
		}
		l.wg.Go(l.datagrams)
		return l, nil
	}
	if l.stream, err = net.Listen("tcp", addr); err != nil {
		return nil, err
	}
	l.wg.Go(l.accept)
	return l, nil
}

// addr is where it listens.
func (l *listener) addr() net.Addr {
	if l.packet != nil {
		return l.packet.LocalAddr()
	}
	return l.stream.Addr()
}

func (l *listener) datagrams() {
	buf := make([]byte, 64<<10)
	for {
		n, _, err := l.packet.ReadFrom(buf)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		msg := make([]byte, 0, n+1)
		msg = append(msg, buf[:n]...)
		if n == 0 || msg[n-1] != '\n' {
			msg = append(msg, '\n')
		}
		if !l.send(msg) {
			return
		}
	}
}

func (l *listener) accept() {
	for {
		c, err := l.stream.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		l.mu.Lock()
		open := l.conns != nil
		if open {
			l.conns[c] = true
		}
		l.mu.Unlock()
		if !open {
			c.Close()
			return
		}
		l.wg.Go(func() { l.messages(c) })
	}
}

// messages passes on the messages of one connection, whole ones only: several
// connections must not mix their lines.
func (l *listener) messages(c net.Conn) {
	defer func() {
		c.Close()
		l.mu.Lock()
		delete(l.conns, c)
		l.mu.Unlock()
	}()
	r := bufio.NewReaderSize(c, 64<<10)
	for {
		msg, err := readMessage(r)
		if len(msg) > 0 && !l.send(msg) {
			return
		}
		if err != nil {
			return
		}
	}
}

// readMessage reads "LEN MSG" or "MSG\n" and ends it with a newline.
func readMessage(r *bufio.Reader) ([]byte, error) {
	if size, head := messageLength(r); size > 0 {
		_, _ = r.Discard(head)
		msg := make([]byte, size, size+1)
		n, err := io.ReadFull(r, msg)
		msg = msg[:n]
		if n == 0 || msg[n-1] != '\n' {
			msg = append(msg, '\n')
		}
		return msg, err
	}
	var msg []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(msg) < maxMessage {
			msg = append(msg, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if n := len(msg); n > 0 && msg[n-1] != '\n' {
			msg = append(msg, '\n')
		}
		return msg, err
	}
}

// messageLength reads the "LEN " in front of "<", 0 where there is none.
func messageLength(r *bufio.Reader) (size, head int) {
	for k := 1; k <= 8; k++ {
		b, err := r.Peek(k)
		if err != nil {
			return 0, 0
		}
		c := b[k-1]
		switch {
		case c-'0' < 10:
			size = size*10 + int(c-'0')
		case c == ' ' && k > 1:
			b, err := r.Peek(k + 1)
			if err != nil || b[k] != '<' || size > maxMessage {
				return 0, 0
			}
			return size, k
		default:
			return 0, 0
		}
	}
	return 0, 0
}

func (l *listener) next(ctx context.Context, p []byte, wait time.Duration) (int, error) {
	return l.feeder.next(ctx, p, wait)
}

func (l *listener) warnings() []string {
	if l.packet == nil {
		return nil
	}
	return []string{fmt.Sprintf("syslog over UDP (%s): messages may have been lost on the way, counts are lower bounds", l.addr())}
}

func (l *listener) Close() error {
	if l.packet != nil {
		l.packet.Close()
	} else {
		l.stream.Close()
	}
	l.mu.Lock()
	for c := range l.conns {
		c.Close()
	}
	l.conns = nil
	l.mu.Unlock()
	l.end()
	return nil
}
