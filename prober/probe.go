package prober

import (
	"context"
	"errors"

	"tbl/target"
	"tbl/timingstats"
)

// ProbeConfig configures Probe.
type ProbeConfig struct {
	// Names are the subtables to ask about, at least one, any bytes.
	Names []string
	// Requests is the most that is sent for one name. 0: as many as the cores
	// need, see DefaultRequests.
	Requests int
	// Exhaust sends Requests for every name instead of stopping as soon as the
	// name is decided.
	Exhaust bool
	// Workers is the number of concurrent requests. 0: 32.
	Workers int
	// MaxError is the model odds of naming the wrong owner below which a name
	// is decided. 0: 1e-6.
	MaxError float64
	// Threshold in clicks: a write below it is fast. 0: 100.
	Threshold int64
	// AutoThreshold takes the threshold from the two populations of this run
	// instead; Threshold is used where there are no two.
	AutoThreshold bool
	// Steer reaches each core on purpose, through source ports that were seen
	// to lead to it, where the target allows to choose them.
	Steer bool
	// KeepEntries leaves the probe's own entries to expire (60 s) instead of
	// deleting them at the end where the dataplane can.
	KeepEntries bool
	// Expect is the owner that a name ought to have; nil or a missing name: no
	// expectation.
	Expect map[string]timingstats.CoreID
	// MaxErrors is the share of failed requests that fails the run. 0: 0.01.
	MaxErrors float64
	Progress  *Progress
}

// ProbeResult is the answer of Probe.
type ProbeResult struct {
	Run
	// ThresholdClicks is the threshold that was used, ThresholdRule how it was
	// found: "fixed" or "auto".
	ThresholdClicks int64  `json:"threshold_clicks"`
	ThresholdRule   string `json:"threshold_rule"`
	// ExpectedRequests is the number per name that was expected beforehand to
	// hear every core with 99.9 %; Ceiling the most that was allowed.
	ExpectedRequests int `json:"expected_requests"`
	Ceiling          int `json:"ceiling_requests"`
	// Names are in the order of the Config.
	Names []NameResult `json:"names"`
	// Hits are the answered requests per core, in order.
	Hits []CoreHits `json:"hits"`
	// Owned is the number of names found to be owned by each known core.
	Owned []CoreOwned `json:"owned"`
	// Removed is the number of the probe's own entries deleted at the end.
	Removed int64 `json:"entries_removed"`
}

// NameResult is what was found about one name.
type NameResult struct {
	Name string `json:"name"`
	// Outcome is "owner", "no owner", "ambiguous" or "incomplete".
	Outcome string `json:"outcome"`
	// Owner is the owning core, nil unless Outcome is "owner".
	Owner *timingstats.CoreID `json:"owner,omitempty"`
	// Odds are the model odds that Outcome names the wrong owner.
	Odds float64 `json:"model_odds_of_error"`
	// Expected is the owner that was expected, nil when none was.
	Expected *timingstats.CoreID `json:"expected,omitempty"`
	Requests int                 `json:"requests"`
	// Cores are those that answered for this name, in order.
	Cores []CoreProbe `json:"cores"`
	// Entries is the most that an answer said the subtable holds.
	Entries int64  `json:"entries"`
	Line    string `json:"line"`
}

// CoreProbe is one core's timed writes into one name.
type CoreProbe struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
	// Owner and NonOwner count by the threshold; TaggedOwner by the tag that
	// came with the answer.
	Owner       int64   `json:"owner"`
	NonOwner    int64   `json:"non_owner"`
	TaggedOwner int64   `json:"tagged_owner"`
	Min         int64   `json:"min_clicks"`
	Avg         float64 `json:"avg_clicks"`
	Max         int64   `json:"max_clicks"`
}

// CoreHits is how many requests a core answered.
type CoreHits struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
}

// CoreOwned is how many of the names a core owns.
type CoreOwned struct {
	Core  timingstats.CoreID `json:"core"`
	Names int                `json:"names"`
}

// Probe finds the owner of each name by timed writes of one small key.
func Probe(ctx context.Context, tgt target.Target, cfg ProbeConfig) (*ProbeResult, error) {
	return nil, errors.New("probe: not there yet")
}
