package render

import (
	"fmt"
	"strings"

	"tbl/prober/proof"
	"tbl/timingstats/verdict"
)

// Proof is the document of validate: the evidence, then one verdict per step,
// then the overall one.
func Proof(r *proof.Result) *Document {
	d := &Document{Command: "validate", Data: r}
	d.Linef("target %s, %s", r.Target, Count(len(r.Cores), "core"))
	if r.Whoami != nil {
		t := d.Append("found", "TMM", "subtable")
		for _, c := range r.Whoami.Names {
			t.Row(c.Core.String(), c.Subtable)
		}
	}
	if r.Load != nil {
		d.Distributions = Load(r.Load).Distributions
	}
	if r.Owners != nil {
		owners(d, r.Owners.Names)
	}
	for _, c := range r.Changed {
		d.Linef("changed on the target: %s", c)
	}
	for _, c := range r.PutBack {
		d.Linef("put back: %s", c)
	}
	for _, c := range r.Lost {
		d.Linef("can't be put back: %s", c)
	}
	warnings(d, r.Warnings)
	for _, s := range r.Steps {
		v := verdict.Verdict{
			Name:   verdict.Name(fmt.Sprintf("step %d %s", s.Step, s.Word)),
			State:  s.State,
			Line:   s.Title + ": " + s.Line,
			Causes: s.More,
		}
		for _, sub := range s.Verdicts {
			// A verdict that passes, or that the step's own line is made of, is told already.
			if sub.State != verdict.Pass && sub.State != verdict.NotJudged && !strings.Contains(s.Line, sub.Line) {
				v.Causes = append(v.Causes, fmt.Sprintf("%s: %s", sub.Name, sub.Line))
			}
		}
		d.Verdicts = append(d.Verdicts, v)
	}
	d.Overall = &r.Overall
	return d
}

// Proofs is the document of several targets' proofs: a column each.
func Proofs(targets []string, results []*proof.Result, docs []*Document) *Document {
	d := Each("validate", targets, docs)
	t := &Table{Name: "steps", Header: append([]string{"step"}, targets...), Left: true}
	for _, s := range proof.Steps() {
		row := []any{fmt.Sprintf("%d %s", s.Step, s.Title)}
		for _, r := range results {
			state := "-"
			for _, x := range r.Steps {
				if x.Step == s.Step {
					state = x.State.String()
				}
			}
			row = append(row, state)
		}
		t.Rows = append(t.Rows, row)
	}
	row := []any{"all"}
	for _, r := range results {
		row = append(row, r.Overall.State.String())
	}
	t.Rows = append(t.Rows, row)
	d.Blocks = append(d.Blocks, Block{Table: t})
	d.Overall = &verdict.Verdict{Name: verdict.Locality, State: verdict.Pass, Line: fmt.Sprintf("OK: every core of %d targets writes into storage it owns", len(results))}
	for i, r := range results {
		if r.Overall.State > d.Overall.State {
			worst := r.Overall
			worst.Line += " (target " + targets[i] + ")"
			d.Overall = &worst
		}
	}
	return d
}
