package ports_test

import (
	"strings"
	"testing"
	"time"

	"tbl/target/remote/ports"
)

func TestPlan(t *testing.T) {
	base := ports.Limits{PortLow: 32768, PortHigh: 60999, TWReuse: 2, TimeWait: time.Minute, OpenFiles: 1024}
	for _, tc := range []struct {
		name        string
		change      func(*ports.Limits)
		use         ports.Usage
		ports       int
		sustainable float64
		after       time.Duration
		warns       string
	}{
		{"slow enough", nil, ports.Usage{Workers: 32, Rate: 470}, 28232, 28232. / 60, 0, ""},
		{"a little too fast", nil, ports.Usage{Workers: 32, Rate: 28232. / 40}, 28232, 28232. / 60, 40 * time.Second, "--bind"},
		{"on loopback", nil, ports.Usage{Workers: 32, Rate: 20000, Loopback: true}, 28232, 28232, 0, ""},
		{"reuse off", func(l *ports.Limits) { l.TWReuse = 0 }, ports.Usage{Rate: 28232, Loopback: true}, 28232, 28232. / 60, time.Second, "tw_reuse"},
		{"reuse on", func(l *ports.Limits) { l.TWReuse = 1 }, ports.Usage{Rate: 20000}, 28232, 28232, 0, ""},
		{"four addresses", nil, ports.Usage{Rate: 28232, Binds: 4}, 4 * 28232, 4 * 28232. / 60, 4 * time.Second, "--bind"},
		{"resets", nil, ports.Usage{Rate: 1e6, LingerReset: true}, 28232, 0, 0, ""},
		{"the server closes", nil, ports.Usage{Rate: 1e6, ServerCloses: true}, 28232, 0, 0, ""},
		{"reserved ports", func(l *ports.Limits) { l.Reserved = 232 }, ports.Usage{}, 28000, 28000. / 60, 0, ""},
		{"too many workers for the files", nil, ports.Usage{Workers: 2000}, 28232, 28232. / 60, 0, "ulimit"},
		{"too many workers for the ports", func(l *ports.Limits) { l.PortLow = 60990; l.OpenFiles = 0 }, ports.Usage{Workers: 11}, 10, 10. / 60, 0, "10 local ports"},
		{"an empty range", func(l *ports.Limits) { l.PortHigh = 1 }, ports.Usage{}, 0, 0, 0, ""},
	} {
		l := base
		if tc.change != nil {
			tc.change(&l)
		}
		b := l.Plan(tc.use)
		if b.Ports != tc.ports || b.Sustainable != tc.sustainable || (b.ExhaustedAfter-tc.after).Abs() > time.Millisecond {
			t.Errorf("%s: %+v", tc.name, b)
		}
		if got := strings.Join(b.Warnings, "\n"); (tc.warns == "") != (got == "") || !strings.Contains(got, tc.warns) {
			t.Errorf("%s: warnings %q, want %q", tc.name, got, tc.warns)
		}
	}
}

func TestReadLimits(t *testing.T) {
	l := ports.ReadLimits()
	if l.PortLow < 1 || l.PortHigh < l.PortLow || l.PortHigh > 65535 || l.TimeWait <= 0 {
		t.Errorf("%+v", l)
	}
}
