package figures

import (
	"testing"

	"tbl/cmd/tbl/internal/render"
	"tbl/timingstats/verdict"
)

// TestFiguresInLists: what stands in a list is held by its name, or its place;
// of the only device also without either.
func TestFiguresInLists(t *testing.T) {
	type m = map[string]any
	device := func(name string, slow, restarts int) m {
		return m{"device": name, "slow": slow, "restarts": restarts, "n": 40, "cores": m{"0": m{"n": 20, "p99_clicks": 5}, "1": m{"n": 20, "p99_clicks": 9}}}
	}
	one := m{"samples": 7, "devices": []m{device("bigip1", 3, 1)}, "cores": m{"0": m{"n": 20}, "1": m{"n": 20}}}
	two := m{"samples": 7, "devices": []m{device("bigip1", 3, 1), device("bigip2", 0, 0)}}
	nodes := m{"nodes": []m{{"node": "1", "ok": 10}, {"node": "2", "ok": 20}}}
	lists := m{"designs": []m{{"design": "per-session", "remote_share": 0.75}, {"design": "local", "remote_share": 0}},
		"names": []m{{"name": "OWNERSHIP", "subtable": "a", "device": "x", "requests": 5}}, "runs": []m{{"run": 1, "writes_per_s": 8.5}}, "nothing": nil}
	for _, c := range []struct {
		data any
		expr string
		want verdict.State
	}{
		{one, "restarts==1", verdict.Pass},
		{one, "samples==7", verdict.Pass},
		{one, "n==20", verdict.Pass}, // each core's, not the device's
		{one, "devices.bigip1.slow==3", verdict.Pass},
		{one, "devices.0.slow==3", verdict.Pass},
		{one, "devices.bigip1.cores.1.p99==9", verdict.Pass},
		{one, "devices.bigip7.slow==3", verdict.Fail},
		{two, "devices.bigip1.restarts==1", verdict.Pass},
		{two, "devices.bigip2.restarts==1", verdict.Fail},
		{two, "devices.1.restarts==0", verdict.Pass},
		{two, "restarts<1", verdict.Fail},       // on one of the two
		{nodes, "nodes.1.ok==10", verdict.Pass}, // the name goes before the place
		{nodes, "nodes.0.ok==10", verdict.Pass},
		{lists, "designs.local.remote_share<1%", verdict.Pass},
		{lists, "designs.per-session.remote==75%", verdict.Pass},
		{lists, "names.a.requests==5", verdict.Pass},
		{lists, "runs.0.writes_per_s>8", verdict.Pass},
	} {
		fields, err := Fields(&render.Document{Data: c.data, Extra: m{"more": []m{{"name": "x", "y": 1}}}})
		if err != nil {
			t.Fatal(err)
		}
		for expr, want := range map[string]verdict.State{c.expr: c.want, "more.x.y==1": verdict.Pass} {
			as, err := verdict.ParseAssertion(expr, false)
			if err != nil {
				t.Fatal(err)
			}
			var vs []verdict.Verdict
			for _, s := range SetsFor(fields, as.Figure()) {
				vs = append(vs, as.Judge(s.Figures))
			}
			if got := verdict.Overall(vs, false); got != want || len(vs) == 0 {
				t.Errorf("%s: %v, want %v: %+v", expr, got, want, vs)
			}
		}
	}
}
