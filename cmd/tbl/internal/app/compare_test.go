package app

import "testing"

func TestParsePercent(t *testing.T) {
	for in, want := range map[string]float64{"10%": 0.1, "10": 0.1, "0": 0, "0.5": 0.005, "250%": 2.5} {
		if got, err := parsePercent(in); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "%", "-1%", "much", "NaN", "Inf", "10%%"} {
		if got, err := parsePercent(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}
