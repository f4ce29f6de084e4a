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
		"many, fast":        {[]timingstats.CoreSummary{batches(0, 30, 0), batches(1, 30, 0)}, Pass, 0},
		"one remote":        {[]timingstats.CoreSummary{batches(0, 30, 0), batches(1, 30, 30)}, Fail, 0},
		"one slow batch":    {[]timingstats.CoreSummary{batches(0, 30, 1), batches(1, 30, 0)}, Pass, 1},
		"few of one, fast":  {[]timingstats.CoreSummary{batches(0, 30, 0), batches(1, 3, 0)}, NotJudged, 0},
		"few of one, slow":  {[]timingstats.CoreSummary{batches(0, 30, 0), batches(1, 3, 1)}, Incomplete, 0},
		"a core is missing": {[]timingstats.CoreSummary{batches(0, 30, 0)}, Incomplete, 0},
	} {
		v, warnings := JudgeBatches(c.cores, 2)
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
