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
	d.Linef("target %s, %d cores", r.Target, len(r.Cores))
	if r.Whoami != nil {
		t := d.Append("found", "TMM", "subtable")
		for _, c := range r.Whoami.Names {
			t.Row(c.Core.String(), c.Subtable)
		}
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
