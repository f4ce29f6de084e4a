package prober

import (
	"context"
	"errors"

	"tbl/target"
	"tbl/timingstats"
)

// AskConfig configures Info, Whoami and Dump.
type AskConfig struct {
	// Requests is how many are sent at least. 0: 30 (Dump: 1). After that, the
	// call goes on until every core has answered, or Limit is reached.
	Requests int
	// Limit is the most that is sent. 0: until a core would be missed with
	// less than one in a million, and at least Requests.
	Limit int
	// Workers is the number of concurrent requests. 0: 8.
	Workers int
	// MaxErrors is the share of failed requests that fails the run. 0: 0.01.
	MaxErrors float64
	Progress  *Progress
}

// InfoResult is the answer of Info.
type InfoResult struct {
	Run
	// Hits are the answered requests per core, in order.
	Hits []CoreHits `json:"hits"`
}

// Info asks which cores there are.
func Info(ctx context.Context, tgt target.Target, cfg AskConfig) (*InfoResult, error) {
	return nil, errors.New("info: not there yet")
}

// WhoamiResult is the answer of Whoami.
type WhoamiResult struct {
	Run
	Names []WhoamiCore `json:"names"` // one per core that answered, in order
}

// WhoamiCore is what a core said of itself.
type WhoamiCore struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
	// Subtable is the name it gave last, Before the other names that it gave
	// earlier in this run (a restart lay between).
	Subtable string   `json:"subtable"`
	Before   []string `json:"before,omitempty"`
	Writes   int64    `json:"writes"`  // since the last reset, as last told
	Entries  int64    `json:"entries"` // by the incremental counter, as last told
	// Doubts are what is wrong with the name, one sentence each.
	Doubts []string `json:"doubts,omitempty"`
}

// Whoami asks every core for its subtable and its counters.
func Whoami(ctx context.Context, tgt target.Target, cfg AskConfig) (*WhoamiResult, error) {
	return nil, errors.New("whoami: not there yet")
}

// DumpResult is the answer of Dump.
type DumpResult struct {
	Run
	Dumps []CoreDump `json:"dumps"` // one per core that answered, in order
}

// CoreDump are the keys in a core's own subtable.
type CoreDump struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
	// Count is the number of keys that the core told last, Keys the keys.
	Count int64    `json:"count"`
	Keys  []string `json:"keys"`
}

// Dump lists the keys that each core holds in its own subtable.
func Dump(ctx context.Context, tgt target.Target, cfg AskConfig) (*DumpResult, error) {
	return nil, errors.New("dump: not there yet")
}
