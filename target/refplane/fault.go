package refplane

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is one deliberate mistake of the dataplane, parsed from its text form
// by ParseFault. Which fields matter depends on Name; the zero Fault is none.
type Fault struct {
	Name    string        // a name of FaultKinds
	Core    int           // dead-core, stall: the core that suffers
	Weights []int         // dag-skew: shares of connections, core by core
	Share   float64       // jitter: share of timings, flap: share of requests; 0 to 1
	Clicks  int64         // jitter: what a timing is inflated to
	Pause   time.Duration // stall: how long
	Every   time.Duration // stall: how often
	Rate    float64       // chatty-log: lines per second that the sink drains
}

// The names of the faults.
const (
	DeterministicNames = "deterministic-names"
	EnumerateCount     = "enumerate-count"
	ChattyLog          = "chatty-log"
	ReloadOrphans      = "reload-orphans"
	DAGSkew            = "dag-skew"
	DeadCore           = "dead-core"
	Stall              = "stall"
	Jitter             = "jitter"
	Flap               = "flap"
)

// FaultKind describes a fault for parsing, help and documents alike.
type FaultKind struct {
	Name string
	// Syntax is the whole argument as help prints it, with optional parts in
	// brackets.
	Syntax string
	// Default is the argument that is meant when none is given; empty for a
	// fault without an argument, "required" where one has to be given.
	Default string
	Help    string
	// MustName lists the verdicts of which at least one has to name the fault,
	// MayTrip those that may fail or warn besides. No other may fail.
	MustName, MayTrip []string

	parse func(f *Fault, arg string) error
	print func(f Fault) string
}

// FaultKinds is the table of the faults, in the order of the documents. The
// caller owns the slice.
func FaultKinds() []FaultKind {
	return []FaultKind{
		{
			Name: DeterministicNames, Syntax: "deterministic-names",
			Help:     "names are localdb_tmm_<core>, built and never probed; ownership is drawn until at least one is another core's",
			MustName: []string{"LOCALITY", "OWNERSHIP"},
			MayTrip:  []string{"LOCALITY", "OWNERSHIP", "BALANCE", "TAIL", "DRIFT", "DECAY"},
		},
		{
			Name: EnumerateCount, Syntax: "enumerate-count",
			Help:     "every single write lists the whole subtable to count it",
			MustName: []string{"DECAY"},
			MayTrip:  []string{"DECAY", "DRIFT", "TAIL"},
		},
		{
			Name: ChattyLog, Syntax: "chatty-log[=R]", Default: "1000",
			Help:     "one log line per request into a sink that drains R lines a second; every line waits in proportion to the backlog, which outlives the run",
			MustName: []string{"DRIFT", "LOG BUDGET"},
			MayTrip:  []string{"DRIFT", "LOG BUDGET", "DECAY", "TAIL"},
			parse:    parseChatty,
			print:    func(f Fault) string { return trimFloat(f.Rate) },
		},
		{
			Name: ReloadOrphans, Syntax: "reload-orphans",
			Help:     "a reset forgets the core's name first, so what was written stays behind under the old one",
			MustName: []string{"LEAK"},
			MayTrip:  []string{"LEAK", "BALANCE", "DRIFT"},
		},
		{
			Name: DAGSkew, Syntax: "dag-skew=W0:W1:…", Default: "3",
			Help:     "cores get connections in these proportions; cores without a weight get 1",
			MustName: []string{"UNIFORMITY"},
			MayTrip:  []string{"UNIFORMITY", "BALANCE", "TAIL", "DRIFT"},
			parse:    parseSkew,
			print: func(f Fault) string {
				s := make([]string, len(f.Weights))
				for i, w := range f.Weights {
					s[i] = strconv.Itoa(w)
				}
				return strings.Join(s, ":")
			},
		},
		{
			Name: DeadCore, Syntax: "dead-core=K", Default: "required",
			Help:     "core K accepts no connection",
			MustName: []string{"COVERAGE", "LOCALITY"},
			MayTrip:  []string{"COVERAGE", "LOCALITY", "UNIFORMITY", "BALANCE", "OWNERSHIP"},
			parse:    func(f *Fault, arg string) error { return parseCore(f, arg) },
			print:    func(f Fault) string { return strconv.Itoa(f.Core) },
		},
		{
			Name: Stall, Syntax: "stall=K:D:P", Default: "0:50ms:1s",
			Help:     "core K pauses for D every P",
			MustName: []string{"TAIL"},
			MayTrip:  []string{"TAIL", "DRIFT"},
			parse:    parseStall,
			print:    func(f Fault) string { return fmt.Sprintf("%d:%s:%s", f.Core, f.Pause, f.Every) },
		},
		{
			Name: Jitter, Syntax: "jitter[=P:D]", Default: "1%:400000",
			Help:  "a share P of timings is inflated to D clicks",
			parse: parseJitter,
			print: func(f Fault) string { return trimFloat(f.Share*100) + "%:" + strconv.FormatInt(f.Clicks, 10) },
		},
		{
			Name: Flap, Syntax: "flap[=P]", Default: "5%",
			Help:     "a share P of requests meets a reset connection, a cut answer, a 500 or a delay",
			MustName: []string{"ERRORS"},
			MayTrip:  []string{"ERRORS", "TAIL", "DECAY", "DRIFT"},
			parse:    func(f *Fault, arg string) (err error) { f.Share, err = parseShare(arg); return err },
			print:    func(f Fault) string { return trimFloat(f.Share*100) + "%" },
		},
	}
}

// ParseFault reads a fault as the command line writes it: a name of
// FaultKinds, and "=" with its argument where it takes one. The error names
// what is expected.
func ParseFault(s string) (Fault, error) {
	name, arg, given := strings.Cut(s, "=")
	kinds := FaultKinds()
	i := slices.IndexFunc(kinds, func(k FaultKind) bool { return k.Name == name })
	if i < 0 {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = k.Name
		}
		return Fault{}, fmt.Errorf("fault %q: unknown; one of %s", name, strings.Join(names, ", "))
	}
	k := kinds[i]
	f := Fault{Name: name}
	if k.parse == nil {
		if given {
			return Fault{}, fmt.Errorf("fault %q: takes no argument", s)
		}
		return f, nil
	}
	if !given {
		if k.Default == "required" {
			return Fault{}, fmt.Errorf("fault %q: argument missing, want %s", s, k.Syntax)
		}
		arg = k.Default
	}
	if err := k.parse(&f, arg); err != nil {
		return Fault{}, fmt.Errorf("fault %q: want %s: %w", s, k.Syntax, err)
	}
	return f, nil
}

// String is the fault as ParseFault reads it, with its argument spelled out.
func (f Fault) String() string {
	for _, k := range FaultKinds() {
		if k.Name == f.Name && k.print != nil {
			return f.Name + "=" + k.print(f)
		}
	}
	return f.Name
}

// trimFloat prints v without needless digits.
func trimFloat(v float64) string { return strconv.FormatFloat(v, 'g', 12, 64) }

// parseShare reads "1%" or "0.01".
func parseShare(s string) (float64, error) {
	num, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(num, 64)
	if err != nil {
		return 0, fmt.Errorf("share %q is no number", s)
	}
	if percent {
		v /= 100
	}
	if !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("share %q is not between 0 and 100%%", s)
	}
	return v, nil
}

func parseCore(f *Fault, s string) error {
	k, err := strconv.Atoi(s)
	if err != nil || k < 0 {
		return fmt.Errorf("%q is no core number", s)
	}
	f.Core = k
	return nil
}

func parseChatty(f *Fault, arg string) error {
	r, err := strconv.ParseFloat(arg, 64)
	if err != nil || !(r > 0 && r <= 1e9) {
		return fmt.Errorf("%q is no rate above 0", arg)
	}
	f.Rate = r
	return nil
}

func parseSkew(f *Fault, arg string) error {
	sum := 0
	for w := range strings.SplitSeq(arg, ":") {
		n, err := strconv.Atoi(w)
		if err != nil || n < 0 || n > 1_000_000 {
			return fmt.Errorf("weight %q is no number from 0 to 1000000", w)
		}
		sum += n
		f.Weights = append(f.Weights, n)
	}
	if sum == 0 {
		return fmt.Errorf("all weights are 0")
	}
	return nil
}

func parseStall(f *Fault, arg string) error {
	part := strings.Split(arg, ":")
	if len(part) != 3 {
		return fmt.Errorf("%q has not three parts", arg)
	}
	if err := parseCore(f, part[0]); err != nil {
		return err
	}
	var err error
	if f.Pause, err = time.ParseDuration(part[1]); err != nil || f.Pause <= 0 {
		return fmt.Errorf("pause %q is no positive duration", part[1])
	}
	if f.Every, err = time.ParseDuration(part[2]); err != nil || f.Every <= f.Pause {
		return fmt.Errorf("period %q is no duration longer than the pause", part[2])
	}
	return nil
}

func parseJitter(f *Fault, arg string) error {
	share, clicks, both := strings.Cut(arg, ":")
	var err error
	if f.Share, err = parseShare(share); err != nil {
		return err
	}
	f.Clicks = 400_000
	if both {
		if f.Clicks, err = strconv.ParseInt(clicks, 10, 64); err != nil || f.Clicks <= 0 || f.Clicks >= 1<<31 {
			return fmt.Errorf("%q is no number of clicks from 1 to 2147483647", clicks)
		}
	}
	return nil
}
