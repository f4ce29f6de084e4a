package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"tbl/target"
)

// ErrPortBusy is in the chain of the error for a request whose source port
// was chosen by the caller and is in use, or still waits after its last
// connection (TIME_WAIT).
var ErrPortBusy = errors.New("source port is busy")

// errExhausted names the cause and what helps.
var errExhausted = errors.New("no local port is free for this destination: " +
	"wait for TIME_WAIT to pass, add source addresses (--bind), widen net.ipv4.ip_local_port_range, " +
	"lower the rate, or close with --linger-reset")

// phase is how far a request got.
type phase uint8

const (
	connecting phase = iota
	shaking          // TLS handshake
	sending
	receiving
)

// classify makes the *target.Error for a failure in a phase. chosen says that
// the caller chose the source port. ctx tells a cancelled caller from a
// time-out of ours.
func classify(ctx context.Context, at phase, chosen bool, err error) *target.Error {
	e := &target.Error{Err: err, Completion: target.CompletionMaybe}
	if at <= shaking {
		e.Completion = target.CompletionNotReached
	}
	var dns *net.DNSError
	var ne net.Error
	switch {
	case ctx.Err() != nil && !errors.Is(err, syscall.ECONNREFUSED):
		e.Class, e.Err = target.ClassCanceled, ctx.Err()
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE):
		e.Class, e.Completion = target.ClassAddressExhausted, target.CompletionUnsent
		if chosen {
			e.Err = fmt.Errorf("%w: %w", ErrPortBusy, err)
		} else {
			e.Err = fmt.Errorf("%w: %w", errExhausted, err)
		}
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Class, e.Completion = target.ClassClient, target.CompletionUnsent
		e.Err = fmt.Errorf("too few open files allowed for so many connections (raise ulimit -n or lower the workers): %w", err)
	case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM),
		errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM),
		errors.Is(err, syscall.EAFNOSUPPORT), errors.Is(err, syscall.EINVAL):
		e.Class = target.ClassClient
		if at == connecting {
			e.Completion = target.CompletionUnsent
		}
	case errors.As(err, &dns):
		e.Class = target.ClassRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, syscall.ETIMEDOUT), errors.As(err, &ne) && ne.Timeout():
		e.Class, e.Err = target.ClassTimeout, errTimeout[at]
	case at == shaking:
		e.Class = target.ClassTLS
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH),
		errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.ENETDOWN), errors.Is(err, syscall.EHOSTDOWN):
		e.Class = target.ClassRefused
	case errors.Is(err, errCut), errors.Is(err, errNoLineEnd), errors.Is(err, io.ErrUnexpectedEOF):
		e.Class = target.ClassTruncated
	case errors.Is(err, errNotHTTP), errors.Is(err, errBadHead), errors.Is(err, errBadChunk), errors.Is(err, errTooLarge):
		e.Class = target.ClassMalformed
	case isTLSAlert(err):
		e.Class = target.ClassTLS
	default:
		// ECONNRESET, EPIPE, ECONNABORTED, a close without an answer.
		e.Class = target.ClassReset
	}
	return e
}

var errTimeout = [...]error{
	connecting: errors.New("no connection in time"),
	shaking:    errors.New("no TLS session in time"),
	sending:    errors.New("the request could not be sent in time"),
	receiving:  errors.New("no whole answer in time"),
}

func isTLSAlert(err error) bool {
	var alert tls.AlertError
	var header tls.RecordHeaderError
	return errors.As(err, &alert) || errors.As(err, &header)
}
