package loader

import (
	"strings"
	"testing"
	"time"
)

func TestPlanPorts(t *testing.T) {
	env := PortEnv{Known: true, FirstPort: 32768, LastPort: 60999, OpenFiles: 1024, TWReuse: 2}
	tests := []struct {
		name        string
		plan        PortPlan
		sustainable float64
		exhausted   time.Duration
		warning     string // part of the only one; empty: none
	}{
		{"short", PortPlan{Requests: 1000, Rate: 5000}, 28232.0 / 60, 0, ""},
		{"just enough", PortPlan{Requests: 28232, Rate: 5000}, 28232.0 / 60, 0, ""},
		{"long and fast", PortPlan{Requests: 100_000, Rate: 5000}, 28232.0 / 60, 5646400 * time.Microsecond, "after 5.6s"},
		{"for ever", PortPlan{Rate: 5000}, 28232.0 / 60, 5646400 * time.Microsecond, "after 5.6s"},
		{"slow", PortPlan{Rate: 400}, 28232.0 / 60, 0, ""},
		{"more addresses", PortPlan{Rate: 5000, Sources: 16}, 16 * 28232.0 / 60, 0, ""},
		{"closed loop", PortPlan{Requests: 100_000}, 28232.0 / 60, 0, "after 28232 requests"},
		{"loopback", PortPlan{Requests: 100_000, Loopback: true}, 28232, 0, ""},
		{"loopback, very fast", PortPlan{Rate: 56464, Loopback: true}, 28232, 500 * time.Millisecond, "28232/s can be sustained"},
		{"reset", PortPlan{Rate: 50_000, LingerReset: true}, 0, 0, ""},
		{"server closes", PortPlan{Rate: 50_000, ServerCloses: true}, 0, 0, ""},
		{"files", PortPlan{Requests: 10, Workers: 2000}, 28232.0 / 60, 0, "ulimit -n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := PlanPorts(env, tt.plan)
			if b.SustainablePerS != tt.sustainable || b.ExhaustedNS != int64(tt.exhausted) {
				t.Errorf("sustainable %v, exhausted %v", b.SustainablePerS, time.Duration(b.ExhaustedNS))
			}
			if len(b.Warnings) > 1 || (tt.warning != "") != (len(b.Warnings) == 1) || !strings.Contains(strings.Join(b.Warnings, ""), tt.warning) {
				t.Errorf("warnings %q", b.Warnings)
			}
		})
	}
	if b := PlanPorts(PortEnv{}, PortPlan{Rate: 1e6}); len(b.Warnings) != 0 || b.Ports != 0 {
		t.Errorf("unknown system: %+v", b)
	}
}

func TestReservedPorts(t *testing.T) {
	for list, want := range map[string]int{"": 0, "\n": 0, "80": 0, "100": 1, "90-101,150,199-300\n": 4, "x,1-y": 0} {
		if got := reservedPorts(list, 100, 199); got != want {
			t.Errorf("%q: %d, want %d", list, got, want)
		}
	}
}

func TestReadPortEnv(t *testing.T) {
	if env := ReadPortEnv(); env.Known && (env.FirstPort < 1 || env.LastPort > 65535 || env.FirstPort > env.LastPort) {
		t.Errorf("%+v", env)
	}
}
