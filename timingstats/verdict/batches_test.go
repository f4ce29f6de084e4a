package verdict

import (
	"strings"
	"testing"

	"tbl/timingstats"
)

// batches is the summary of a core with so many batches, of which slow are.
func batches(core int, n, slow int) timingstats.CoreSummary {
	var r timingstats.CoreRecorder
	for i := range n {
		clicks := int64(5)
		if i < slow {
			clicks = 50_000
		}
		r.Add(clicks, timingstats.Untagged, 1)
	}
	return r.Summary(timingstats.CoreID{Core: core}, 0)
}

func TestJudgeBatches(t *testing.T) {
	for name, c := range map[string]struct {
		cores []timingstats.CoreSummary
		state State
		warns int
	}{
		"many, fast":         {[]timingstats.CoreSummary{batches(0, 30, 0), batches(1, 30, 0)}, Pass, 0},
		"one remote":         {[]timingstats.CoreSummary{batches(0, 30, 0), batches(1, 30, 30)}, Fail, 0},
		"one slow batch":     {[]timingstats.CoreSummary{batches(0, 30, 1), batches(1, 30, 0)}, Pass, 1},
		"few of one, fast":   {[]timingstats.CoreSummary{batches(0, 30, 0), batches(1, 3, 0)}, NotJudged, 0},
		"few of one, a slow": {[]timingstats.CoreSummary{batches(0, 30, 0), batches(1, 3, 1)}, NotJudged, 1},
		"few of one, slow":   {[]timingstats.CoreSummary{batches(0, 30, 0), batches(1, 3, 2)}, Incomplete, 0},
		"too few for so many cores": {[]timingstats.CoreSummary{batches(0, 11, 0), batches(1, 30, 0), batches(2, 30, 0), batches(3, 30, 0), batches(4, 30, 0), batches(5, 30, 0),
			batches(6, 30, 0), batches(7, 30, 0), batches(8, 30, 0), batches(9, 30, 0), batches(10, 30, 0), batches(11, 30, 0)}, NotJudged, 0},
		"a core is missing": {[]timingstats.CoreSummary{batches(0, 30, 0)}, Incomplete, 0},
	} {
		v, warnings := JudgeBatches(c.cores, max(2, len(c.cores)))
		if v.State != c.state || len(warnings) != c.warns {
			t.Errorf("%s: %v with %d warnings, want %v with %d: %s", name, v.State, len(warnings), c.state, c.warns, v.Line)
		}
		if v.State == NotJudged && strings.Contains(v.Line, "INCOMPLETE") {
			t.Errorf("%s: %s", name, v.Line)
		}
	}
}

func TestJudgeTails(t *testing.T) {
	cores := func(p99 ...int64) []TailCore {
		var out []TailCore
		for i, p := range p99 {
			r := new(timingstats.Recorder)
			for k := range int64(2000) {
				v := int64(1000)
				if k%50 == 0 {
					v = p
				}
				r.Record(v)
			}
			out = append(out, TailCore{Core: timingstats.CoreID{Core: i}, Latency: r})
		}
		return out
	}
	even, uneven := cores(2000, 2000, 2000), cores(2000, 90_000, 2000)
	for name, c := range map[string]struct {
		response, service []TailCore
		state             State
		ofService         bool
	}{
		"both even":       {even, even, Pass, false},
		"service stands":  {even, uneven, Warn, true},
		"response stands": {uneven, even, Warn, false},
		"closed loop":     {even, nil, Pass, false},
	} {
		v := JudgeTails(c.response, c.service)
		if v.State != c.state || strings.Contains(v.Line, "service time") != c.ofService {
			t.Errorf("%s: %v %s", name, v.State, v.Line)
		}
	}
}

// A machine with other work slows whole batches: that makes no core mixed, and
// hides no core that is.
func TestBatchesOnABusyMachine(t *testing.T) {
	summary := func(clicks ...int64) timingstats.CoreSummary {
		var r timingstats.CoreRecorder
		for range 10 {
			for _, c := range clicks {
				r.Add(c, timingstats.Untagged, 1)
			}
		}
		return BatchSummary(&r, timingstats.CoreID{}, 0)
	}
	for name, c := range map[string]struct {
		core  timingstats.CoreSummary
		state State
	}{
		"quiet":                 {summary(9, 10, 10, 11, 12), Pass},
		"slowed":                {summary(55, 61, 76, 104, 155), Pass},
		"slowed and mixed":      {summary(55, 61, 76, 104, 900), Fail},
		"mixed":                 {summary(9, 10, 10, 11, 150), Fail},
		"remote":                {summary(1700, 1900, 2000, 2500, 4000), Fail},
		"a tenth of all remote": {summary(170, 180, 190, 210, 240), Fail},
	} {
		if v, _ := JudgeBatches([]timingstats.CoreSummary{c.core}, 1); v.State != c.state {
			t.Errorf("%s: %v, want %v: %s (threshold %d)", name, v.State, c.state, v.Line, c.core.ThresholdClicks)
		}
	}
}
