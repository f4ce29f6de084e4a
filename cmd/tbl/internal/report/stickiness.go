package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tbl/cmd/tbl/internal/render"
)

// stickinessChart shows what became of each run's transactions, and below what
// each node served.
func stickinessChart(lines []line) *Chart {
	c := &Chart{Title: "Stickiness of transactions and what each node served"}
	c.Caption = "Above, the transactions of each run by what became of them: all of a sticky run stayed on one node. Below, each node's share of the invocations served."
	t := &render.Table{Name: "stickiness", Header: []string{"run", "what", "count", "share"}, Left: true}
	outcomes := []string{"one node", "split", "refused", "cut"}
	seen := map[string]bool{}
	var desc []string
	top := newPlot("")
	nodes := newPlot("node")
	bodies := make([]shapes, len(outcomes))
	for i, l := range lines {
		s := l.sticky
		for _, n := range s.Nodes {
			seen[n.Name] = true
		}
		at, bottom := float64(i), 0.0
		for k, n := range []int64{s.Whole, s.Split, s.Refused, s.Cut} {
			share := float64(n) / float64(s.Transactions)
			t.Row(l.name, "transactions: "+outcomes[k], n, render.Percent(share))
			if n > 0 {
				bodies[k].polygons = append(bodies[k].polygons, box(at-0.3, at+0.3, bottom, bottom+share))
			}
			bottom += share
		}
		desc = append(desc, fmt.Sprintf("%s: of %s transactions %s stayed on one node, %s were split, %s refused.",
			l.name, render.Int(s.Transactions), render.Int(s.Whole), render.Int(s.Split), render.Int(s.Refused)))
	}
	percent := func(v float64) string { return number(100*v) + " %" }
	nameAxis(&top.X, shortNames(namesOf(lines)))
	linearAxis(&top.Y, 0, 1, fewTicks, percent)
	top.Add(grid{horizontal: true})
	for k := range bodies {
		bodies[k].fill = faint(seriesInk(k), 0.8)
		if len(bodies[k].polygons) > 0 {
			top.Add(marked{bodies[k]})
			c.keys = append(c.keys, key{label: outcomes[k], fill: bodies[k].fill})
		}
	}
	order := slices.Sorted(maps.Keys(seen))
	high := 0.0
	nodes.Add(grid{horizontal: true})
	slot := 0.6 / float64(len(lines))
	for i, l := range lines {
		d := dots{style: seriesGlyph(i)}
		for _, n := range l.sticky.Nodes {
			d.at = append(d.at, point{float64(slices.Index(order, n.Name)) - 0.3 + slot*(float64(i)+0.5), n.Share})
			high = max(high, n.Share)
			t.Row(l.name, "invocations: "+n.Name, n.Invocations, render.Percent(n.Share))
			t.Row(l.name, "transactions: "+n.Name, n.Transactions, render.Percent(float64(n.Transactions)/float64(l.sticky.Transactions)))
		}
		nodes.Add(marked{d})
		if len(lines) > 1 {
			c.keys = append(c.keys, key{label: "served, " + l.name, glyph: d.style})
		}
	}
	nameAxis(&nodes.X, shortNames(order))
	linearAxis(&nodes.Y, 0, high*1.15, fewTicks, percent)
	c.panels = []panel{{top, 190, "transactions"}, {nodes, 190, "share of invocations"}}
	c.Table = t
	c.Desc = strings.Join(desc, " ")
	return c
}

// shortNames keeps names to what an axis has room for.
func shortNames(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = shorten(n, 24)
	}
	return out
}
