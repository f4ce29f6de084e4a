package render

import (
	"fmt"
	"time"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// entryMeta is the JSON form of meta. Times are unix seconds, −1 where the
// dataplane can't tell; timers are seconds, −1 for indefinite.
type entryMeta struct {
	Target            string             `json:"target"`
	Core              timingstats.CoreID `json:"core"`
	Subtable          string             `json:"subtable"`
	Key               string             `json:"key"`
	Found             bool               `json:"found"`
	Created           int64              `json:"created_s"`
	Touched           int64              `json:"touched_s"`
	Timeout           int64              `json:"timeout_s"`
	TimeoutRemaining  int64              `json:"timeout_remaining_s"`
	Lifetime          int64              `json:"lifetime_s"`
	LifetimeRemaining int64              `json:"lifetime_remaining_s"`
}

// Meta is the document of meta. Times are shown in loc.
func Meta(name, subtable, key string, slot, core int, m target.Meta, loc *time.Location) *Document {
	e := entryMeta{
		Target: name, Core: timingstats.CoreID{Slot: slot, Core: core}, Subtable: subtable, Key: key, Found: m.Found,
		Created: m.Created, Touched: m.Touched, Timeout: int64(m.Timeout), TimeoutRemaining: int64(m.TimeoutRemaining),
		Lifetime: int64(m.Lifetime), LifetimeRemaining: int64(m.LifetimeRemaining),
	}
	d := &Document{Command: "meta", Data: e}
	if !m.Found {
		line := fmt.Sprintf("INCOMPLETE: no entry %+q in subtable %+q: never written, deleted or expired", key, subtable)
		d.Verdicts = []verdict.Verdict{{Name: verdict.Coverage, State: verdict.Incomplete, Line: line}}
		return d
	}
	t := d.Append("meta", "what", "value", "remaining")
	t.Left = true
	when := func(s int64) string {
		if s < 0 {
			return "unknown"
		}
		return time.Unix(s, 0).In(loc).Format("2006-01-02 15:04:05 MST")
	}
	timer := func(s target.Seconds) string {
		if s == target.Indefinite {
			return "indefinite"
		}
		return Int(int64(s)) + " s"
	}
	t.Row("created", when(m.Created), "")
	t.Row("last touched", when(m.Touched), "")
	t.Row("timeout", timer(m.Timeout), timer(m.TimeoutRemaining))
	t.Row("lifetime", timer(m.Lifetime), timer(m.LifetimeRemaining))
	return d
}
