package loader_test

import (
	"testing"

	"tbl/loader"
	"tbl/target"
	"tbl/target/refplane"
	"tbl/target/remote"
	"tbl/timingstats/verdict"
)

// even says how far the busiest and the idlest core are from an equal share.
func even(r *loader.LoadResult) (most float64) {
	want := float64(r.OK) / float64(len(r.Cores))
	for _, c := range r.Cores {
		most = max(most, float64(c.Writes)/want-1, 1-float64(c.Writes)/want)
	}
	return most
}

func TestSteerReachesAllCoresEvenly(t *testing.T) {
	eleven := 11
	targets := map[string]func(t *testing.T) target.Target{
		"embedded": func(t *testing.T) target.Target {
			return plane(t, refplane.Config{Cores: 16, Seed: 5, Clock: refplane.Model})
		},
		"http": func(t *testing.T) target.Target {
			addr, _ := serve(t, plane(t, refplane.Config{Cores: 16}), "127.0.0.1:0")
			return client(t, addr, remote.Config{})
		},
		"http, portable": func(t *testing.T) target.Target {
			addr, _ := serve(t, plane(t, refplane.Config{Cores: 16}), "127.0.0.1:0")
			return client(t, addr, remote.Config{Portable: true})
		},
	}
	for name, open := range targets {
		t.Run(name, func(t *testing.T) {
			tgt := open(t)
			r, err := loader.Load(t.Context(), tgt, loader.LoadConfig{Count: 4000, Steer: true, Workers: 8})
			if err != nil {
				t.Fatal(err)
			}
			adds(t, r.Accounting)
			if r.OK != 4000 || len(r.Cores) != 16 || even(r) > 0.01 || r.Steering.Misses != 0 {
				t.Errorf("%+v, %d cores, off by %v, %+v", r.Accounting, len(r.Cores), even(r), r.Steering)
			}
			if r, err = loader.Load(t.Context(), tgt, loader.LoadConfig{Count: 500, OnlyCore: &eleven, Workers: 8}); err != nil {
				t.Fatal(err)
			}
			adds(t, r.Accounting)
			if r.OK != 500 || len(r.Cores) != 1 || r.Cores[0].Core.Core != 11 || len(r.Missing) != 0 || verdict.Overall(r.Verdicts, true) != verdict.Pass {
				t.Errorf("%+v, %+v", r.Accounting, r.Cores)
			}
		})
	}
	t.Run("src-ip", func(t *testing.T) {
		p := plane(t, refplane.Config{Cores: 4, Clock: refplane.Model, Seed: 1, DAG: refplane.SrcIP})
		if _, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: 100, Steer: true}); err == nil {
			t.Error("one address reaches one core only, and nothing is said")
		} else {
			t.Log(err)
		}
	})
}
