package loader

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tbl/loader/steer"
	"tbl/target"
)

// splitmix is the finaliser of SplitMix64.
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// byPort picks the core by the source port, as a disaggregator does.
func byPort(cores int) func(int64, *target.Request) int {
	return func(_ int64, req *target.Request) int {
		return int(splitmix(uint64(req.Conn.Src.Port())) % uint64(cores))
	}
}

func TestSteerEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 16, latency: time.Millisecond, core: byPort(16)}
		r, err := Load(t.Context(), f, LoadConfig{Count: 16_000, Steer: true})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		for _, c := range r.Cores {
			if c.Writes < 990 || c.Writes > 1010 {
				t.Errorf("core %v got %d of 16,000", c.Core, c.Writes)
			}
		}
		if r.Steering.Misses != 0 || r.Steering.Hits != 16_000 || !r.Steering.Consistent {
			t.Errorf("steering %+v", r.Steering)
		}
	})
}

func TestOnlyCore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 16, latency: time.Millisecond, core: byPort(16)}
		core := 11
		r, err := Load(t.Context(), f, LoadConfig{Count: 5000, OnlyCore: &core})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Cores) != 1 || r.Cores[0].Core.Core != 11 || r.Cores[0].Writes != 5000 {
			t.Errorf("cores %+v", r.Cores)
		}
	})
}

// Ports that wait in TIME_WAIT for a minute after use are passed over, and
// nothing is counted twice.
func TestSteerAroundTimeWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used := map[uint16]time.Time{}
		f := &fake{cores: 4, core: byPort(4)}
		f.fail = func(_ int64, req *target.Request) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			p := req.Conn.Src.Port()
			if at, ok := used[p]; ok && time.Since(at) < time.Minute {
				return &target.Error{Class: target.ClassAddressExhausted, Completion: target.CompletionUnsent}
			}
			used[p] = time.Now()
			return nil
		}
		r, err := Load(t.Context(), f, LoadConfig{Count: 4000, Steer: true, Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if r.OK != 4000 || r.Steering.Skipped == 0 || r.Cores[0].Writes < 990 || r.Cores[0].Writes > 1010 {
			t.Errorf("accounting %+v, steering %+v", r.Accounting, r.Steering)
		}
	})
}

func TestNotSteerable(t *testing.T) {
	core := 2
	tests := []struct {
		name string
		core func(int64, *target.Request) int
		only *int
	}{
		{"translated", nil, nil},
		{"one core only", func(int64, *target.Request) int { return 1 }, nil},
		{"core never reached", func(_ int64, r *target.Request) int { return int(r.Conn.Src.Port() % 2) }, &core},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{cores: 4, core: tt.core}
				if f.core == nil { // the port says nothing
					n := 0
					f.core = func(int64, *target.Request) int {
						f.mu.Lock()
						defer f.mu.Unlock()
						n++
						return int(splitmix(uint64(n)) % 4)
					}
				}
				r, err := Load(t.Context(), f, LoadConfig{Count: 100, Steer: true, OnlyCore: tt.only})
				if !errors.Is(err, steer.ErrNotSteerable) || r.Sent != 0 {
					t.Errorf("sent %d, error %v", r.Sent, err)
				}
			})
		})
	}
}
