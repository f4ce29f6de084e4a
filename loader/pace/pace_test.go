package pace

import (
	"math"
	"testing"
	"time"
)

func TestSchedule(t *testing.T) {
	tests := []struct {
		name  string
		rate  float64
		ramp  time.Duration
		stage []Stage
		total int64
		at    map[int64]time.Duration
	}{
		{"rate", 1000, 0, nil, 0, map[int64]time.Duration{0: 0, 1: time.Millisecond, 5000: 5 * time.Second}},
		{"ramp", 1000, 10 * time.Second, nil, 0,
			// 50·t² are due during the ramp, 5,000 at its end.
			map[int64]time.Duration{0: 0, 50: time.Second, 1250: 5 * time.Second, 5000: 10 * time.Second, 6000: 11 * time.Second}},
		{"stages", 0, 0, []Stage{
			{Duration: 10 * time.Second, Rate: 100},              // 0 to 100: 500
			{Duration: 10 * time.Second, Rate: 100},              // 1,000
			{Duration: 10 * time.Second, Rate: 0},                // 500
			{Duration: time.Second, Rate: 0},                     // none
			{Duration: time.Second, Rate: 50, Step: true}}, 2050, // 50
			map[int64]time.Duration{500: 10 * time.Second, 1500: 20 * time.Second, 2000: 31 * time.Second, 2025: 31500 * time.Millisecond, 2050: -1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := New(tt.rate, tt.ramp, tt.stage)
			if got := s.Total(); got != tt.total {
				t.Errorf("total %d, want %d", got, tt.total)
			}
			for n, want := range tt.at {
				got, ok := s.At(n)
				if want < 0 {
					if ok {
						t.Errorf("request %d at %v, want the end", n, got)
					}
					continue
				}
				if !ok || (got-want).Abs() > time.Microsecond {
					t.Errorf("request %d at %v, %v, want %v", n, got, ok, want)
				}
				if due := s.Due(got); math.Abs(due-float64(n)) > 0.01 {
					t.Errorf("%v due at %v, want %d", due, got, n)
				}
			}
			last := time.Duration(0)
			for n := range int64(7000) {
				at, ok := s.At(n)
				if !ok {
					if n != tt.total {
						t.Errorf("ends at request %d", n)
					}
					break
				}
				if at < last {
					t.Fatalf("request %d at %v, before its predecessor at %v", n, at, last)
				}
				last = at
			}
		})
	}
}
