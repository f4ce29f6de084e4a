package nodes

import (
	"slices"
	"testing"
	"time"

	"tbl/target"
	"tbl/target/cluster"
)

var names = []string{"http://[::1]:8080", "b"}

func TestParseFault(t *testing.T) {
	refuse, err := cluster.ParseFaultKind(cluster.FaultNames()[0])
	if err != nil {
		t.Fatal(err)
	}
	kind := cluster.FaultNames()[0]
	for in, want := range map[string]Fault{
		kind + "@1":                     {names[0], cluster.Fault{Kind: refuse, P: 1}},
		kind + "@http://[::1]:8080":     {names[0], cluster.Fault{Kind: refuse, P: 1}},
		kind + "@http://[::1]:8080:0.5": {names[0], cluster.Fault{Kind: refuse, P: 0.5}},
		kind + "@b:1":                   {"b", cluster.Fault{Kind: refuse, P: 1}},
	} {
		if got, err := ParseFault(in, names); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", kind, kind + "@", kind + "@3", kind + "@b:0", kind + "@b:2", kind + "@b:x", "nothing@b"} {
		if got, err := ParseFault(in, names); err == nil {
			t.Errorf("%q: %+v", in, got)
		}
	}
}

func TestParseEvent(t *testing.T) {
	for in, want := range map[string]Event{
		"1@50%":                {Node: names[0], Share: true, At: 100},
		"http://[::1]:8080@0%": {Node: names[0], Share: true},
		"b@99.5%":              {Node: "b", Share: true, At: 199},
		"2@3s":                 {Node: "b", After: 3 * time.Second},
	} {
		if got, err := ParseEvent(in, names, 200); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "b", "b@", "3@50%", "b@100%", "b@101%", "b@-1%", "b@NaN%", "b@-1s", "b@soon"} {
		if got, err := ParseEvent(in, names, 200); err == nil {
			t.Errorf("%q: %+v", in, got)
		}
	}
}

// TestAbsent: who joins before ever being killed is not there at the start.
func TestAbsent(t *testing.T) {
	absent := Absent([]Event{
		{Node: "late", Join: true, After: time.Second},
		{Node: "back", Join: true, After: 2 * time.Second}, {Node: "back", After: time.Second},
		{Node: "gone", Share: true, At: 5},
		// Percentages count as earlier than durations.
		{Node: "share joins", After: time.Second}, {Node: "share joins", Join: true, Share: true, At: 5},
		{Node: "share leaves", Join: true, After: time.Second}, {Node: "share leaves", Share: true, At: 5},
	})
	for node, want := range map[string]bool{
		"late": true, "back": false, "gone": false, "other": false, "share joins": true, "share leaves": false,
	} {
		if absent[node] != want {
			t.Errorf("%s: absent %v, want %v", node, absent[node], want)
		}
	}
}

// TestScheduleInOrder: what is due at one call happens in the order of time,
// in whatever order it was given.
func TestScheduleInOrder(t *testing.T) {
	for name, events := range map[string][]Event{
		"times":  {{Node: "b", After: 20}, {Node: "b", Join: true, After: 10}},
		"shares": {{Node: "b", Share: true, At: 20}, {Node: "b", Share: true, Join: true, At: 10}},
		"both":   {{Node: "b", After: 10}, {Node: "b", Share: true, Join: true, At: 20}},
	} {
		faulty := map[string]*cluster.Faulty{"a": cluster.NewFaulty(nil, 1), "b": cluster.NewFaulty(nil, 1)}
		list := []cluster.Node{cluster.NodeOf("a", faulty["a"]), cluster.NodeOf("b", faulty["b"])}
		fam, err := cluster.NewFamily(cluster.FamilyConfig{Clock: target.Wall{}}, list...)
		if err != nil {
			t.Fatal(err)
		}
		clock := &still{}
		due, left := Schedule(events, clock, fam, list, faulty)
		if l := left(); len(l) != 2 {
			t.Errorf("%s: %v have not happened at the start, want both", name, l)
		}
		clock.at += 30
		due(30)
		if l := left(); len(l) != 0 {
			t.Errorf("%s: %v have not happened", name, l)
		}
		if _, names := fam.View(); !slices.Equal(names, []string{"a"}) {
			t.Errorf("%s: in the view are %q, want a alone", name, names)
		}
	}
}

// still is a time that stands still until it is moved.
type still struct {
	target.Wall
	at time.Duration
}

func (s *still) Now() time.Time { return time.Unix(1000, 0).Add(s.at) }
