// Package wire is the HTTP protocol between a client and a dataplane, written
// once for both ends: which endpoints there are, how a target.Request becomes
// a path, a query and a body, and how a target.Answer becomes a line of text —
// and both ways back.
//
// It holds no connection and does no I/O. Everything appends to buffers of
// the caller, so that a client in its steady state allocates nothing.
//
// # Encoding
//
// Query values are percent-encoded by the client (everything but unreserved
// characters). The server decodes them once; a '+' is a space there, as in
// any HTML form. Keys and names that come back are percent-encoded for bytes
// 0x00–0x20, '%' and 0x7F and above, so an answer is always one line and its
// fields are separated by single spaces.
//
// # Forms the endpoint table leaves open
//
//   - Every answer may end in two more fields, in this order: node=NAME (only
//     when the server was told to name its node in the body) and slot=N.
//   - /table with op=keys: the result is the space-joined list of encoded
//     keys, encoded as a whole once more, so that it stays one field. Deleting
//     all entries is op=delete with flags=all. The new value of op=timeout and
//     op=lifetime travels in timeout= and lifetime=.
//   - /meta for an entry that does not exist: "tmm=1 missing". An answer with
//     timeout=-1 is read the same way.
//   - /reload answers "tmm=1 reloaded", /stats one JSON object
//     {"tmm":1,"cores":[…]}.
//   - In lists without a count (/names) an item that looks like one of the
//     closing fields has its first letter percent-encoded.
package wire

import (
	"fmt"
	"net/http"

	"tbl/target"
)

const (
	// MaxBody is the largest body of /bulk_load in bytes: 16 MiB.
	MaxBody = 16 << 20
	// DefaultProbeName is the subtable that /probe takes without a name.
	DefaultProbeName = "uuid_01"
	// NodeHeader is the response header that names the serving node.
	NodeHeader = "X-Tbl-Node"
	// MaxCore is the largest core, slot and core count that an answer may
	// name. Whoever indexes by core, or sends requests until every core has
	// answered, is safe from absurd answers by it. No machine has so many.
	MaxCore = 1023
)

// Endpoint is a row of the endpoint table.
type Endpoint struct {
	Op     target.Op
	Method string
	Path   string
	// Guarded endpoints write, delete, or list or read entries; a server with
	// a token asks for it there.
	Guarded bool
}

var endpoints = [...]Endpoint{
	{target.OpInfo, http.MethodGet, "/info", false},
	{target.OpWhoami, http.MethodGet, "/whoami", false},
	{target.OpLoad, http.MethodGet, "/load", true},
	{target.OpBulkLoad, http.MethodPost, "/bulk_load", true},
	{target.OpDump, http.MethodGet, "/dump", true},
	{target.OpProbe, http.MethodGet, "/probe", true},
	{target.OpReset, http.MethodGet, "/reset", true},
	{target.OpResetName, http.MethodGet, "/reset", true},
	{target.OpTable, http.MethodGet, "/table", true},
	{target.OpMeta, http.MethodGet, "/meta", true},
	{target.OpNames, http.MethodGet, "/names", true},
	{target.OpStats, http.MethodGet, "/stats", false},
	{target.OpReload, http.MethodPost, "/reload", true},
}

// Endpoints lists every endpoint, one row per operation. OpReset and
// OpResetName share a path.
func Endpoints() []Endpoint { return append([]Endpoint(nil), endpoints[:]...) }

// Of returns op's row. An op outside the contract returns false.
func Of(op target.Op) (Endpoint, bool) {
	if int(op) < len(endpoints) {
		return endpoints[op], true
	}
	return Endpoint{}, false
}

// Find returns the row of a request's path: for /reset the one of OpReset
// (ParseQuery turns it into OpResetName where a name is given).
func Find(path string) (Endpoint, bool) {
	for i := range endpoints {
		if endpoints[i].Path == path {
			return endpoints[i], true
		}
	}
	return Endpoint{}, false
}

type tableOp struct {
	op   target.TableOp
	name string
}

// tableOps in the order of target.TableOp; TableDeleteAll is "delete" with
// the flag "all".
var tableOps = [...]tableOp{
	{target.TableSet, "set"},
	{target.TableAdd, "add"},
	{target.TableReplace, "replace"},
	{target.TableLookup, "lookup"},
	{target.TableIncr, "incr"},
	{target.TableAppend, "append"},
	{target.TableDelete, "delete"},
	{target.TableDeleteAll, "delete"},
	{target.TableKeys, "keys"},
	{target.TableTimeout, "timeout"},
	{target.TableLifetime, "lifetime"},
}

type tableFlag struct {
	flag target.TableFlags
	name string
}

var tableFlags = [...]tableFlag{
	{target.FlagNoTouch, "notouch"},
	{target.FlagExcl, "excl"},
	{target.FlagMustExist, "mustexist"},
	{target.FlagRemaining, "remaining"},
	{target.FlagCount, "count"},
}

const flagAll = "all"

// needsKey says that the table command names one entry.
func needsKey(op target.TableOp) bool {
	return op != target.TableKeys && op != target.TableDeleteAll
}

// Check reports what is wrong with req before anything of it is sent: an
// empty key or name where one is needed, an empty or oversized body.
func Check(req *target.Request) error {
	switch req.Op {
	case target.OpLoad:
		if len(req.Key) == 0 {
			return fmt.Errorf("load: empty key")
		}
	case target.OpBulkLoad:
		switch {
		case len(req.Body) == 0:
			return fmt.Errorf("bulk load: empty body")
		case len(req.Body) > MaxBody:
			return fmt.Errorf("bulk load: body of %d bytes, the limit is %d", len(req.Body), MaxBody)
		}
	case target.OpResetName:
		if len(req.Subtable) == 0 {
			return fmt.Errorf("reset: empty subtable name")
		}
	case target.OpTable:
		if int(req.Table) >= len(tableOps) {
			return fmt.Errorf("table: unknown command %d", req.Table)
		}
		if len(req.Subtable) == 0 {
			return fmt.Errorf("table %s: empty subtable name", tableOps[req.Table].name)
		}
		if needsKey(req.Table) && len(req.Key) == 0 {
			return fmt.Errorf("table %s: empty key", tableOps[req.Table].name)
		}
	case target.OpMeta:
		if len(req.Subtable) == 0 || len(req.Key) == 0 {
			return fmt.Errorf("meta: subtable and key are needed")
		}
	default:
		if _, ok := Of(req.Op); !ok {
			return fmt.Errorf("unknown operation %d", req.Op)
		}
	}
	return nil
}
