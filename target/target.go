// Package target is the contract between the tools and a dataplane: what can
// be asked (Request), what comes back (Answer), how a failure is told apart
// (Error), and the clock that everything is measured by (Clock).
//
// It holds no implementation. The reference dataplane, a remote one over
// HTTP and a cluster of several are packages of their own, and the measuring
// packages know this one only: which core owns a name has to be learnt by
// asking, never by looking inside.
package target

import (
	"context"
	"net/netip"
	"time"
)

// Target is a dataplane: cores that serve requests, each on the core that
// its connection reached.
//
// All methods are safe for concurrent use.
type Target interface {
	// Do sends req on a connection of its own and fills ans with what came
	// back. It resets ans first and reuses its buffers, so a caller that keeps
	// one Answer per worker allocates nothing in the steady state. On failure
	// the error is, or wraps, an *Error; ans.Timing and the identity fields may
	// be filled all the same, everything else must not be read.
	//
	// Do keeps no reference to req or ans after it has returned.
	Do(ctx context.Context, req *Request, ans *Answer) error

	// Clock is the time the target lives in. Whoever measures a target takes
	// its time, its pauses and its workers from here.
	Clock() Clock

	// Name tells the target apart from others: "embedded", or the base URL.
	Name() string

	// Close releases what the target holds. Do fails with ClassClosed after it.
	Close() error
}

// Op is what a request asks for. One Op is one endpoint of the wire contract.
type Op uint8

// The operations. OpInfo to OpReset exist on every dataplane; the others may
// be missing, and then fail with an error for which Unsupported is true.
const (
	OpInfo      Op = iota // which core answered, how many there are
	OpWhoami              // the accepting core's subtable and counters
	OpLoad                // write Key=Value into the accepting core's subtable
	OpBulkLoad            // write Keys, value "1", into the accepting core's subtable
	OpDump                // list the keys of the accepting core's subtable
	OpProbe               // one timed write into Subtable
	OpReset               // delete the entries of the accepting core's subtable
	OpResetName           // delete Subtable, whoever owns it
	OpTable               // one table command on Subtable
	OpMeta                // times and timers of one entry
	OpNames               // subtables the accepting core knows to hold entries of ours
	OpStats               // counters of every core (reference dataplane only)
	OpReload              // forget names and counters, keep entries (reference only)
)

// Conn is the 4-tuple of a connection, from which the dataplane's
// disaggregator picks the accepting core.
type Conn struct {
	Src, Dst netip.AddrPort
}

// Request is one request. The zero value asks for OpInfo.
//
// Slices are only read, and only until Do returns.
type Request struct {
	Op Op

	// Conn pins the connection. The zero value lets the target choose: a fresh
	// source port over HTTP, an invented 4-tuple when embedded. A client that
	// steers sets Src (an unspecified address with a port chooses the port
	// only). A server in front of an embedded target sets both.
	Conn Conn

	// Subtable is the name for OpProbe, OpResetName, OpTable and OpMeta.
	Subtable []byte
	// Key is the key for OpLoad, OpTable and OpMeta. Any bytes.
	Key []byte
	// Value is the value for OpLoad and OpTable. Any bytes. For TableIncr it
	// is the decimal delta, for TableAppend the string; for TableTimeout and
	// TableLifetime it is unused (see Timeout, Lifetime).
	Value []byte
	// Body holds the keys of OpBulkLoad, each ended by '\n', as they go over
	// the wire. Blank lines are skipped and a '\r' before the '\n' is dropped;
	// a key can therefore hold neither CR nor LF.
	Body []byte

	// Table is the command of OpTable, Flags its options.
	Table TableOp
	Flags TableFlags
	// Timeout and Lifetime are for TableSet, TableAdd and TableReplace, and the
	// new value for TableTimeout and TableLifetime. Zero: not given.
	Timeout, Lifetime Seconds
}

// TableOp is a command of the table.
type TableOp uint8

// The table commands.
const (
	TableSet TableOp = iota
	TableAdd
	TableReplace
	TableLookup
	TableIncr
	TableAppend
	TableDelete
	TableDeleteAll // "delete" with an empty key and flag all: every entry of the subtable
	TableKeys
	TableTimeout
	TableLifetime
)

// TableFlags are the options of a table command, as a set of bits.
type TableFlags uint8

// The options.
const (
	FlagNoTouch   TableFlags = 1 << iota // the operation does not restart the idle timer
	FlagExcl                             // set: leave an existing key as it is
	FlagMustExist                        // set, incr, append: leave a missing key missing
	FlagRemaining                        // timeout, lifetime: what is left of it
	FlagCount                            // keys: how many, not which
)

// Seconds is a timer of a table entry in whole seconds. The zero value means
// that the option was not given (the command's default applies).
type Seconds int64

// Values of Seconds that are no length of time.
const (
	Indefinite   Seconds = -1 // never expires; "indef" and "indefinite" on the wire
	KeepSeconds  Seconds = -2 // a literal 0 on the wire: leave as stored
	UnsetSeconds Seconds = 0  // option absent
)

// Answer is what came back. Which fields are filled depends on the Op. The
// byte slices belong to the Answer and are valid until its next use.
type Answer struct {
	// Core is the accepting core's number and Slot its blade; Slot is 0 where
	// the dataplane doesn't know blades (real slots start at 1).
	Slot, Core int
	// Cores is the dataplane's own count of cores (OpInfo, OpWhoami, per
	// blade on a chassis); 0 when the answer didn't say.
	Cores int
	// Node is the name of the node that served the request, empty when it
	// doesn't say.
	Node []byte

	Subtable []byte // OpWhoami, OpLoad, OpBulkLoad, OpProbe
	Key      []byte // OpLoad: the key as the server understood it, decoded

	Writes  int64 // OpWhoami: writes since the last reset
	Entries int64 // OpWhoami: entries by the incremental counter; OpProbe: entries of the subtable
	Written int64 // OpBulkLoad: keys written
	Deleted int64 // OpReset, OpResetName
	Count   int64 // OpDump: number of keys

	// Clicks is the time of the write, or of the whole write loop for
	// OpBulkLoad, in the dataplane's clicks (OpBulkLoad, OpProbe, OpTable).
	Clicks int64
	// ClicksPerWrite is OpBulkLoad's integer division.
	ClicksPerWrite int64
	// Local says that the server tagged the operation OWNER (OpProbe, OpTable).
	Local bool
	// OwnerKnown says that Owner holds the subtable's owning core (OpTable on
	// a dataplane that knows it).
	OwnerKnown bool
	Owner      int

	Result []byte   // OpTable: the result, decoded; for TableKeys without FlagCount see List
	List   [][]byte // OpDump: keys; OpNames: subtables; OpTable with TableKeys: keys. Decoded.

	Meta  Meta        // OpMeta
	Stats []CoreStats // OpStats

	Timing Timing

	buf []byte // backing store of List
}

// Reset empties a for its next use and keeps its buffers.
func (a *Answer) Reset() {
	*a = Answer{
		Node:     a.Node[:0],
		Subtable: a.Subtable[:0],
		Key:      a.Key[:0],
		Result:   a.Result[:0],
		List:     a.List[:0],
		Stats:    a.Stats[:0],
		buf:      a.buf[:0],
	}
}

// AppendList appends a copy of item to a.List.
func (a *Answer) AppendList(item []byte) {
	start := len(a.buf)
	a.buf = append(a.buf, item...)
	a.List = append(a.List, a.buf[start:len(a.buf):len(a.buf)])
}

// Meta is what a dataplane knows of one entry's times.
type Meta struct {
	Found bool // false: no such entry, or expired
	// Created and Touched are unix seconds; -1 where the dataplane can't tell.
	Created, Touched int64
	// Timeout is the idle timer, Lifetime the one from creation; Indefinite
	// where there is none. The Remaining fields are what is left of each.
	Timeout, TimeoutRemaining   Seconds
	Lifetime, LifetimeRemaining Seconds
}

// CoreStats are the counters of one core. All are exact at the moment they
// are read on that core.
type CoreStats struct {
	Core         int   `json:"core"`
	Subtables    int64 `json:"subtables"`
	Entries      int64 `json:"entries"`
	Bytes        int64 `json:"bytes"`
	WritesLocal  int64 `json:"writes_local"`
	WritesRemote int64 `json:"writes_remote"` // writes of this core into subtables of others
	Expired      int64 `json:"expired"`
	Connections  int64 `json:"connections"`
}

// Timing is where a request's time went, on the target's clock. All zero for
// a target without connections (embedded), except Total.
type Timing struct {
	Connect   time.Duration // until the connection stood
	FirstByte time.Duration // from the start until the first byte of the answer
	Total     time.Duration // from the start until the whole answer was there
	// ServerClosed says that the server closed first: TIME_WAIT is then on its
	// side, else on ours.
	ServerClosed bool
}
