package verdict

import (
	"math"
	"strings"
	"testing"

	"tbl/timingstats"
)

func TestAssertions(t *testing.T) {
	f := Figures{
		All: map[string]float64{
			"rate_per_s": 4367, "errors": 3, "errors_share": 0.0005, "slow": 2, "slow_share": 0.002,
			"p99_ns": 12_400_000, "n": 98, "nan": math.NaN(), "max_clicks": 18, "max_ns": 5e6, "skew_share": 0.3,
		},
		Cores: map[timingstats.CoreID]map[string]float64{
			{Core: 0}:          {"p95_clicks": 10, "n": 50, "p50_clicks": 5, "lost": 7},
			{Core: 1}:          {"p95_clicks": 18, "n": 48, "slow_share": 0.004, "lost": 7},
			{Slot: 2, Core: 1}: {"p95_clicks": 12, "n": 1, "lost": 7},
		},
	}
	for _, c := range []struct {
		text  string
		state State
		line  string
	}{
		{"rate>4000", Pass, "it is 4,367"},
		{"rate > 4,400", Fail, "it is 4,367"},
		{"rate<1,234,567.5", Pass, "it is 4,367"},
		{"p99<1,500ms", Pass, "12.4 ms"},
		{"rate_per_s>=4367", Pass, ""},
		{"errors<0.1%", Pass, "0.05 %"},
		{"errors<0.01%", Fail, "0.05 %"},
		{"errors<=3", Pass, ""},
		{"errors==0", Fail, "it is 3"},
		{"errors!=0", Pass, ""},
		{"slow<0.1%", Fail, "0.2 %"},
		{"slow<5", Pass, "it is 2"},
		{"p99_ms<20", Pass, "12.4"},
		{"p99_ms<12", Fail, "12.4"},
		{"p99<20ms", Pass, "12.4 ms"},
		{"p99_us<12400.5", Pass, ""},
		{"p99_s<0.01", Fail, ""},
		{"p95<50", Pass, "on all 3 cores (at most 18 on TMM 1)"},
		{"p95<15", Fail, "TMM 1 18"},
		{"p95_clicks>11", Fail, "TMM 0 10"},
		{"p95>9", Pass, "at least 10 on TMM 0"},
		{"lost==7", Pass, "OK: lost==7 on all 3 cores"},
		{"lost!=0", Pass, "on all 3 cores (nearest 7 on TMM 0)"},
		{"p95!=13", Pass, "(nearest 12 on TMM 2/1)"},
		{"p95!=18", Fail, "TMM 1 18"},
		{"p95==12", Fail, "it is TMM 0 10, TMM 1 18"},
		{"cores.1.p95<15", Fail, "TMM 1 18"},
		{"cores.0.p95<15", Pass, ""},
		{"cores.2/1.p95<15", Pass, ""},
		{"cores.*.n>=48", Fail, "TMM 2/1 1"},
		{"n>=98", Pass, ""}, // the whole's figure, not each core's
		{"p50<50", Fail, "no such figure on TMM 1, TMM 2/1"},
		{"cores.7.p95<15", Fail, "no such figure"},
		{"nonsense<1", Fail, "no such figure"},
		{"rate<1%", Fail, "no such figure"},
		{"nan<5", Fail, ""},
		{"nan>5", Fail, ""},
		{"max<50", Fail, "say which of max_clicks, max_ns is meant"},
		{"max<50ms", Pass, ""},
		{"max_clicks<50ms", Fail, "isn't one"},
		{"skew<50%", Pass, ""},
		{"skew<0.5", Fail, "no such figure"},
		{"skew_share<0.5", Pass, ""},
		{"skew_share<50%", Pass, "30 %"},
	} {
		a, err := ParseAssertion(c.text, false)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		v := a.Judge(f)
		if v.State != c.state || !strings.Contains(v.Line, c.line) || v.Name != Assert || !strings.Contains(v.Line, strings.TrimSpace(c.text)) {
			t.Errorf("%s: %v %s", c.text, v.State, v.Line)
		}
		w, _ := ParseAssertion(c.text, true)
		if v := w.Judge(f); (v.State == Warn) != (c.state == Fail) || v.State == Fail {
			t.Errorf("%s as a warning: %v", c.text, v.State)
		}
	}
}

// The figure of several cores is the worst: the one nearest to breaking the
// assertion, or the one that breaks it most.
func TestAssertionWorst(t *testing.T) {
	f := Figures{Cores: map[timingstats.CoreID]map[string]float64{{Core: 0}: {"n": 10}, {Core: 1}: {"n": 18}, {Core: 2}: {"n": 1}}}
	for text, want := range map[string]float64{"n<50": 18, "n<=5": 18, "n>0": 1, "n>=5": 1, "n==11": 1, "n==5": 18, "n!=11": 10, "n!=0": 1, "n!=20": 18} {
		a, err := ParseAssertion(text, false)
		if err != nil {
			t.Fatal(err)
		}
		if v := a.Judge(f); v.Figures["n"] != want {
			t.Errorf("%s: %v, want %v", text, v.Figures["n"], want)
		}
	}
	same, err := ParseAssertion("n==1", false)
	if err != nil {
		t.Fatal(err)
	}
	v := same.Judge(Figures{Cores: map[timingstats.CoreID]map[string]float64{{Core: 0}: {"n": 1}, {Core: 1}: {"n": 1}}})
	if v.Line != "OK: n==1 on all 2 cores" {
		t.Error(v.Line)
	}
}

func TestParseAssertionErrors(t *testing.T) {
	for _, s := range []string{"", "p99", "p99<", "<5", "p99<x", "p99<5q", "p99<<5", "p99=5", "cores.x.p99<5", "cores.1<5", "a b<5", "p99<NaN", "p99<inf", "p99<%", "p99<5 5",
		"slow<0,5%", "slow<0,500%", "slow<1,500%", "rate>4,40", "rate>44,00", "rate>4400,000", "rate>0,500", "rate>,400", "rate>4,,400", "rate>4,400.5,0", "p99<1,5ms", "p99<-1,5"} {
		if a, err := ParseAssertion(s, false); err == nil {
			t.Errorf("%q was read as %+v", s, a)
		} else if !strings.Contains(err.Error(), "assertion") {
			t.Errorf("%q: %v", s, err)
		} else if strings.Contains(s, ",") && !strings.Contains(err.Error(), "with a point, 0.5;") {
			t.Errorf("%q: %v: want what to write instead", s, err)
		}
	}
}

func FuzzParseAssertion(f *testing.F) {
	for _, s := range []string{"p99<50", "slow<0.1%", "cores.1/2.p99_ms>=20ms", "<", "%"} {
		f.Add(s)
	}
	figures := Figures{All: map[string]float64{"p99_clicks": 5}}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAssertion(s, false)
		if err != nil {
			return
		}
		if v := a.Judge(figures); v.State != Pass && v.State != Fail {
			t.Errorf("%q: %v", s, v.State)
		}
	})
}
