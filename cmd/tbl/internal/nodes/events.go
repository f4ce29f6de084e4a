package nodes

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"tbl/target"
	"tbl/target/cluster"
	"tbl/timingstats/verdict"
)

// Fault makes requests to a node fail.
type Fault struct {
	Node  string
	Fault cluster.Fault
}

// Event is a node that leaves or joins.
type Event struct {
	Node string
	Join bool // else it leaves
	// With Share it happens when At invocations have started, else After the start.
	Share bool
	At    int64
	After time.Duration
}

// nodeNamed is the node that a user means by its name or its number from 1.
func nodeNamed(s string, names []string) (string, error) {
	for i, n := range names {
		if s == n || s == strconv.Itoa(i+1) {
			return n, nil
		}
	}
	return "", fmt.Errorf("no node %q, want 1 to %d", s, len(names))
}

// ParseFault reads KIND@NODE[:P]: the node by one of names, or by its number from 1;
// P is 1 where it is left out.
func ParseFault(s string, names []string) (Fault, error) {
	kind, rest, ok := strings.Cut(s, "@")
	if !ok {
		return Fault{}, errors.New("want KIND@NODE or KIND@NODE:P")
	}
	k, err := cluster.ParseFaultKind(kind)
	if err != nil {
		return Fault{}, err
	}
	p := 1.0
	node, err := nodeNamed(rest, names)
	if i := strings.LastIndexByte(rest, ':'); err != nil && i >= 0 {
		if p, err = strconv.ParseFloat(rest[i+1:], 64); err != nil || !(p > 0 && p <= 1) {
			return Fault{}, fmt.Errorf("probability %q: want more than 0, up to 1", rest[i+1:])
		}
		node, err = nodeNamed(rest[:i], names)
	}
	return Fault{node, cluster.Fault{Kind: k, P: p}}, err
}

// String says what happens and when.
func (e Event) String() string {
	what, when := "is killed", "after "+e.After.String()
	if e.Join {
		what = "joins"
	}
	if e.Share {
		when = "at invocation " + verdict.Thousands(e.At)
	}
	return fmt.Sprintf("node %s %s %s", e.Node, what, when)
}

// ParseEvent reads NODE@50% or NODE@3s; total is the run's invocations. Whether the
// node joins is the caller's to say.
func ParseEvent(s string, names []string, total int64) (Event, error) {
	i := strings.LastIndexByte(s, '@')
	if i < 0 {
		return Event{}, errors.New("want NODE@WHEN")
	}
	node, err := nodeNamed(s[:i], names)
	if err != nil {
		return Event{}, err
	}
	e := Event{Node: node}
	if pct, ok := strings.CutSuffix(s[i+1:], "%"); ok {
		share, err := strconv.ParseFloat(pct, 64)
		if err != nil || !(share >= 0 && share < 100) {
			return e, fmt.Errorf("%q: want a percentage from 0%% to less than 100%%, where the run is over", s[i+1:])
		}
		e.Share, e.At = true, int64(share/100*float64(total))
		return e, nil
	}
	if e.After, err = time.ParseDuration(s[i+1:]); err != nil || e.After < 0 {
		return e, fmt.Errorf("%q: want a percentage such as 50%% or a duration such as 3s", s[i+1:])
	}
	return e, nil
}

// CheckEvents refuses what has no order: a node that is killed and joins at the
// same time.
func CheckEvents(events []Event) error {
	for i, a := range events {
		for _, b := range events[:i] {
			if a.Node == b.Node && a.Join != b.Join && a.At == b.At && a.After == b.After {
				return fmt.Errorf("node %s is killed and joins at the same time: want one before the other", a.Node)
			}
		}
	}
	return nil
}

// WithFaults puts the faults between each node and its callers, and returns what
// does so by the node's name. seed makes them repeatable, 0: they are drawn.
func WithFaults(nodes []cluster.Node, faults []Fault, seed uint64) map[string]*cluster.Faulty {
	faulty := make(map[string]*cluster.Faulty)
	for i := range nodes {
		n := &nodes[i]
		if seed != 0 {
			seed++ // the nodes fail independently
		}
		for via, t := range n.Targets {
			if t != nil {
				f := cluster.NewFaulty(t, seed)
				var list []cluster.Fault
				for _, x := range faults {
					if x.Node == n.Name {
						list = append(list, x.Fault)
					}
				}
				f.Set(list...)
				faulty[n.Name], n.Targets[via] = f, f
			}
		}
	}
	return faulty
}

// Absent are the nodes that are to join before they are ever killed: they
// are not there at the start.
func Absent(events []Event) map[string]bool {
	out := make(map[string]bool)
	first := make(map[string]bool)
	for _, e := range inOrder(events) {
		if !first[e.Node] {
			first[e.Node], out[e.Node] = true, e.Join
		}
	}
	return out
}

// inOrder is the events in the order in which they happen. Percentages and
// durations can't be compared: percentages count as earlier.
func inOrder(events []Event) []Event {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.At, b.At)) })
	return events
}

// Schedule returns what is called before each invocation and lets the events
// happen when they are due; those due at the start happen before it returns. A
// killed node refuses everything and leaves the view; who joins is reachable and
// in the view. The function may be called by several workers at once; time counts
// from here on. The other one, for when the run is over, tells which events have
// not happened.
func Schedule(events []Event, clock target.Clock, fam *cluster.Family, nodes []cluster.Node, faulty map[string]*cluster.Faulty) (func(int64), func() []Event) {
	start := clock.Now()
	there := make(map[string]bool)
	for _, n := range nodes {
		there[n.Name] = true
	}
	for name, gone := range Absent(events) {
		there[name] = !gone
	}
	left := inOrder(events)
	var busy atomic.Bool
	var pending atomic.Int64
	pending.Store(int64(len(left)))
	due := func(started int64) {
		if pending.Load() == 0 || busy.Swap(true) {
			return
		}
		defer busy.Store(false)
		keep := left[:0]
		for _, e := range left {
			if e.Share && started < e.At || !e.Share && clock.Now().Sub(start) < e.After {
				keep = append(keep, e)
				continue
			}
			if there[e.Node] = e.Join; e.Join {
				faulty[e.Node].Revive()
			} else {
				faulty[e.Node].Kill()
			}
			var list []cluster.Node
			for _, n := range nodes {
				if there[n.Name] {
					list = append(list, n)
				}
			}
			id, _ := fam.View()
			fam.Update(id+1, list...)
		}
		left = keep
		pending.Store(int64(len(left)))
	}
	due(0)
	return due, func() []Event { return left }
}
