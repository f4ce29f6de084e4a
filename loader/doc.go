// Package loader writes to a dataplane and accounts for every request: one
// write per fresh connection (Load), or batches of fresh keys (Bulk).
//
// It prints nothing and ends nothing: what went wrong is counted by class,
// what is doubtful travels as a warning, and what is bad as a verdict on the
// result. Both run until they are done, until their context is done (the
// result is then partial, and still adds up), or until the target turns out
// to be none. The share of requests that were sent always equals those that
// succeeded plus those that failed.
package loader

import (
	"io"

	"tbl/loader/source"
)

// What is in package source, by the names that a caller of this one needs.
type (
	// Keys is a kind of generated keys.
	Keys = source.Keys
	// CSV is a Source that reads rows of key and value.
	CSV = source.CSV
	// CSVOptions says how OpenCSV reads.
	CSVOptions = source.CSVOptions
)

// The kinds of generated keys. The zero value is KeysSeq.
const (
	KeysSeq  = source.KeysSeq
	KeysUUID = source.KeysUUID
	KeysZipf = source.KeysZipf
)

// OpenCSV reads and checks rows, see source.OpenCSV.
func OpenCSV(r io.Reader, opt CSVOptions) (*CSV, error) { return source.OpenCSV(r, opt) }

// ParseKeys reads a kind of generated keys.
func ParseKeys(s string) (Keys, error) { return source.ParseKeys(s) }
