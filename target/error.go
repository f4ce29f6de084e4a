package target

import (
	"errors"
	"fmt"
)

// Class sorts failed requests for the accounting: every request that was
// sent is ok or in exactly one class.
type Class uint8

// The classes. The zero value is no failure.
const (
	ClassOK               Class = iota
	ClassRefused                // nobody listens, or unreachable
	ClassReset                  // connection reset or closed without an answer
	ClassTimeout                // no connection, or no whole answer, in time
	ClassAddressExhausted       // no local port free
	ClassHTTP4xx                // answered with a 4xx status
	ClassHTTP5xx                // answered with a 5xx status
	ClassMalformed              // answered with something that is no answer
	ClassTruncated              // the answer ended before it was whole
	ClassTLS                    // handshake failed
	ClassClient                 // not sent: the client's own error
	ClassCanceled               // not sent or cut off by the caller's context
	ClassClosed                 // the target was closed
	NumClasses
)

var classNames = [NumClasses]string{
	ClassOK: "ok", ClassRefused: "refused", ClassReset: "reset", ClassTimeout: "timeout",
	ClassAddressExhausted: "address exhausted", ClassHTTP4xx: "http-4xx", ClassHTTP5xx: "http-5xx",
	ClassMalformed: "malformed", ClassTruncated: "truncated", ClassTLS: "tls", ClassClient: "client",
	ClassCanceled: "canceled", ClassClosed: "closed",
}

// String is the class as tables and JSON spell it.
func (c Class) String() string {
	if c < NumClasses {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// MarshalText spells the class for JSON, also as a key.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *Class) UnmarshalText(b []byte) error {
	for i, n := range classNames {
		if n == string(b) {
			*c = Class(i)
			return nil
		}
	}
	return fmt.Errorf("unknown error class %q", b)
}

// Completion is what is known about a failed request's effect on the server.
type Completion uint8

// The completions. The zero value is the careful one.
const (
	CompletionMaybe      Completion = iota // may have been done: reset after sending, time-out, cut answer
	CompletionUnsent                       // the client's own error, nothing left it
	CompletionNotReached                   // no server was reached: refused, unreachable, handshake failed
	CompletionNo                           // a server was reached and certainly did not do it
	CompletionYes                          // done, or answered with an application error (4xx, 5xx)
)

// String names the completion in error texts.
func (c Completion) String() string {
	return [...]string{"maybe", "unsent", "not reached", "no", "yes"}[c]
}

// Error is a failed request.
type Error struct {
	Class      Class
	Completion Completion
	Status     int   // the HTTP status, 0 when there was none
	Err        error // the cause, may be nil when Class and Status say it all
}

// Error is one line: class first, then the cause.
func (e *Error) Error() string {
	switch {
	case e.Err != nil:
		return e.Class.String() + ": " + e.Err.Error()
	case e.Status != 0:
		return fmt.Sprintf("%s: status %d", e.Class, e.Status)
	}
	return e.Class.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf is the class of err: ClassOK for nil, the *Error's class where
// there is one in the chain, ClassClient otherwise.
func ClassOf(err error) Class {
	if err == nil {
		return ClassOK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ClassClient
}

// Unsupported reports that the dataplane answered that it has no such
// endpoint (404), which for the operations after OpReset is no fault.
func Unsupported(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == 404
}
