package verdict_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tbl/target"
	"tbl/target/refplane"
	"tbl/target/refplane/table"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

var (
	accuracyRuns = flag.Int("accuracy.runs", 0, "seeded runs per cell of the accuracy table; 0: the short form")
	accuracyTime = flag.Duration("accuracy.time", 0, "stop beginning new runs after so long; 0: never in the long form, 3s in the short one")
	accuracyFile = flag.String("accuracy.state", "", "keep the counts in this JSON file and go on from it: the long form in parts")
	accuracyOut  = flag.String("accuracy.out", "", "write the tables of LOCALITY into this Markdown file, in place of those there")
)

// gridCores are the numbers of cores, the quick ones first.
var gridCores = []int{2, 4, 16, 64}

// dataplanes are those whose runs the table is made of, those first whose
// faults are a matter of where writes go. From each run the first 25, 100 and
// 1,000 samples of each core are judged; in the short form no more than 100 are
// written.
func dataplanes(long bool) []dataplane {
	sizes := []int{25, 100, 1000}
	if !long {
		sizes = sizes[:2]
	}
	out := []dataplane{
		{Name: "healthy, 1 % jitter", shares: []float64{1, 0.75, 0.5, 0.25, 0.1, 0.05}},
		{Name: "healthy, 2 % jitter", fault: "jitter=2%"},
		{Name: "`deterministic-names`", fault: "deterministic-names"},
		{Name: "`dead-core=1`", fault: "dead-core=1"},
	}
	for _, k := range refplane.FaultKinds() {
		switch k.Name {
		case refplane.DeterministicNames, refplane.Jitter, refplane.DeadCore:
		default:
			out = append(out, dataplane{Name: "`" + k.Name + "`", fault: k.Name})
		}
	}
	for i := range out {
		out[i].sizes = sizes
	}
	return out
}

// dataplane is one kind of runs.
type dataplane struct {
	Name  string
	fault string
	sizes []int // samples per core
	// shares of one core's writes that are remote, each a row of the table
	// besides that of the dataplane as it is: the first so many of the core's
	// samples are then timed writes to a name that another core owns.
	shares []float64
}

// cell counts what LOCALITY said in the runs of one row of the table.
type cell struct {
	Runs       int64
	Remote     int64 // runs with a core whose writes are remote, by the oracle
	Caught     int64 // of these, naming one of them
	Named      int64 // of these, naming all of them
	MeanCaught int64
	Alarms     int64 // runs in which a core is named whose writes are not remote
	MeanAlarms int64
	Incomplete int64
}

func (c cell) plus(o cell) cell {
	c.Runs += o.Runs
	c.Remote += o.Remote
	c.Caught += o.Caught
	c.Named += o.Named
	c.MeanCaught += o.MeanCaught
	c.Alarms += o.Alarms
	c.MeanAlarms += o.MeanAlarms
	c.Incomplete += o.Incomplete
	return c
}

// key names a cell: a dataplane, a share of one core's writes, a size.
type key struct {
	dataplane string
	share     float64
	cores     int
	samples   int
}

func (k key) String() string {
	return fmt.Sprintf("%s|%g|%d|%d", k.dataplane, k.share, k.cores, k.samples)
}

// sample is one timed write.
type sample struct {
	clicks int64
	tag    timingstats.Tag
}

// sampleSink takes the dataplane's log and keeps its samples, core by core. The
// log hands over whole lines.
type sampleSink struct {
	cores [][]sample
	name  []string // subtable of each core
}

// clear makes the sink ready for another dataplane.
func (s *sampleSink) clear(cores int) {
	s.cores = slices.Grow(s.cores[:0], cores)[:cores]
	for i := range s.cores {
		s.cores[i] = s.cores[i][:0]
	}
	s.name = make([]string, cores)
}

func (s *sampleSink) Write(p []byte) (int, error) {
	for b := p; len(b) > 0; {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			return 0, fmt.Errorf("the log was cut within a line: %q", b)
		}
		s.line(b[:i])
		b = b[i+1:]
	}
	return len(p), nil
}

// line looks at the two ends of a line, between which the key stands:
//
//	… <HTTP_REQUEST>: tmm=0 subtable=… clicks=5 FAST_LOCAL (sampled 1/1)
func (s *sampleSink) line(line []byte) {
	open := bytes.LastIndexByte(line, '(')
	if open < 0 || !bytes.HasPrefix(line[open+1:], []byte("sampled 1/")) {
		return
	}
	var one sample
	head := line[:open]
	if fast, ok := bytes.CutSuffix(head, []byte(" FAST_LOCAL ")); ok {
		head, one.tag = fast, timingstats.Fast
	} else if slow, ok := bytes.CutSuffix(head, []byte(" SLOW ")); ok {
		head, one.tag = slow, timingstats.Slow
	} else {
		return
	}
	unit := int64(1)
	for ; len(head) > 0 && head[len(head)-1]-'0' < 10; head = head[:len(head)-1] {
		one.clicks += unit * int64(head[len(head)-1]-'0')
		unit *= 10
	}
	msg, ok := bytes.CutPrefix(line[bytes.IndexByte(line, '>')+1:], []byte(": tmm="))
	if !ok || !bytes.HasSuffix(head, []byte(" clicks=")) {
		return
	}
	core := 0
	for ; len(msg) > 0 && msg[0]-'0' < 10; msg = msg[1:] {
		core = core*10 + int(msg[0]-'0')
	}
	s.cores[core] = append(s.cores[core], one)
	if s.name[core] == "" {
		_, sub, _ := bytes.Cut(msg, []byte(" subtable="))
		sub, _, _ = bytes.Cut(sub, []byte(" "))
		s.name[core] = string(sub)
	}
}

// conn is a connection's random 4-tuple.
func conn(rng *rand.Rand) target.Conn {
	addr := func() netip.Addr {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], rng.Uint32())
		return netip.AddrFrom4(b)
	}
	return target.Conn{
		Src: netip.AddrPortFrom(addr(), uint16(1024+rng.IntN(64_000))),
		Dst: netip.AddrPortFrom(addr(), 80),
	}
}

// runner makes runs one after the other. Of one run nothing but memory is left
// for the next. The zero value is ready.
type runner struct {
	sink   sampleSink
	remote []sample // of the victim
	mixed  []sample
	left   []int // samples that each core still lacks
	all    []timingstats.CoreSummary
	look   func(p *refplane.Plane) // at the dataplane when all is written; may be nil
}

// seed is that of a dataplane's nth run: no two dataplanes share one, whose
// runs would else be the same where a fault changes nothing that is judged.
func (d *dataplane) seed(n uint64) uint64 { return table.Hash(n, []byte(d.Name)) }

// reset writes into each core's subtable and clears it, as it is done between
// runs: there are faults that act then.
func reset(ctx context.Context, p *refplane.Plane, cores int, rng *rand.Rand, patience int) {
	var ans target.Answer
	done := map[int]bool{}
	for misses := 0; misses < patience; misses++ {
		via := conn(rng)
		if core := p.CoreOf(via); !done[core] {
			done[core] = true
			misses = 0
			for _, op := range []target.Op{target.OpLoad, target.OpReset} {
				_ = p.Do(ctx, &target.Request{Op: op, Conn: via, Key: []byte("before")}, &ans) // flap: then not
			}
		}
		if len(done) == cores {
			return
		}
	}
}

// newPlane starts the dataplane of a run on the model clock. The fault is written
// as on the command line; with none it is healthy.
func newPlane(fault string, cores int, seed uint64, log io.Writer, sampling int) (*refplane.Plane, error) {
	cfg := refplane.Config{Cores: cores, Seed: seed, Clock: refplane.Model, Log: log, LogSample: sampling}
	if fault != "" {
		f, err := refplane.ParseFault(fault)
		if err != nil {
			return nil, err
		}
		cfg.Faults = []refplane.Fault{f}
	}
	return refplane.New(cfg)
}

// run writes until every core has as many samples as the largest size wants,
// and judges every cell of the dataplane.
func (r *runner) run(d *dataplane, cores int, n uint64, count func(key, cell)) (err error) {
	seed := d.seed(n)
	most := d.sizes[len(d.sizes)-1]
	sink := &r.sink
	sink.clear(cores)
	p, err := newPlane(d.fault, cores, seed, sink, 1)
	if err != nil {
		return err
	}
	defer func() {
		if e := p.Close(); err == nil {
			err = e
		}
	}()
	rng := rand.New(rand.NewPCG(seed, uint64(cores)))
	ctx := context.Background()
	var ans target.Answer
	write := target.Request{Op: target.OpLoad}
	var name []byte
	left := r.left[:0]
	for range cores {
		left = append(left, most)
	}
	open := cores * most
	victim := rng.IntN(cores)
	remote := r.remote[:0]
	foreign := []byte("elsewhere")
	for i := 0; len(d.shares) > 0 && p.OwnerOf(foreign) == victim; i++ {
		foreign = fmt.Appendf(nil, "elsewhere_%d", i)
	}
	// A core that so many connections in a row don't reach is never reached.
	patience := 64 * cores
	reset(ctx, p, cores, rng, patience)
	if err := p.FlushLog(); err != nil {
		return err
	}
	sink.clear(cores)
	for try, last := 0, 0; open > 0 && try-last < patience; try++ {
		via := conn(rng)
		core := p.CoreOf(via)
		if left[core] == 0 {
			continue
		}
		last = try
		left[core]--
		open--
		name = strconv.AppendInt(name[:0], int64(try), 10)
		write.Conn, write.Key, write.Value = via, name, name[:1]
		_ = p.Do(ctx, &write, &ans) // flap: no sample then
		if core == victim && len(d.shares) > 0 {
			if err := p.Do(ctx, &target.Request{Op: target.OpProbe, Conn: via, Subtable: foreign}, &ans); err != nil {
				return err
			}
			remote = append(remote, sample{ans.Clicks, timingstats.Untagged})
		}
	}
	if err := p.FlushLog(); err != nil {
		return err
	}

	if r.look != nil {
		r.look(p)
	}

	truth := make([]bool, cores)
	for core, name := range sink.name {
		truth[core] = name != "" && p.OwnerOf([]byte(name)) != core
	}
	for _, n := range d.sizes {
		all := r.all[:0]
		at := -1
		for core, samples := range sink.cores {
			if len(samples) == 0 {
				continue
			}
			if core == victim {
				at = len(all)
			}
			all = append(all, summary(core, samples[:min(n, len(samples))]))
		}
		count(key{d.Name, 0, cores, n}, judge(all, cores, truth))
		for _, share := range d.shares {
			k := int(math.Ceil(share * float64(n)))
			r.mixed = append(append(r.mixed[:0], remote[:k]...), sink.cores[victim][:n-k]...)
			all[at] = summary(victim, r.mixed)
			truth[victim] = true
			count(key{d.Name, share, cores, n}, judge(all, cores, truth))
			truth[victim] = false
		}
		r.all = all
	}
	r.left, r.remote = left, remote
	return nil
}

// summary is that of a core's samples, in any order. They are recorded by tag
// and the quick ones by clicks, as a recorder has them in the end: it has little
// to sort then.
func summary(core int, samples []sample) timingstats.CoreSummary {
	const few = 32 // clicks, which most own writes stay below
	var n [timingstats.Slow + 1][few]int
	for _, s := range samples {
		if s.clicks < few {
			n[s.tag][s.clicks]++
		}
	}
	var r timingstats.CoreRecorder
	for tag := range n {
		for clicks, n := range n[tag] {
			for range n {
				r.Add(int64(clicks), timingstats.Tag(tag), 1)
			}
		}
	}
	for _, s := range samples {
		if s.clicks >= few {
			r.Add(s.clicks, s.tag, 1)
		}
	}
	return r.Summary(timingstats.CoreID{Core: core}, 0)
}

// judge is one run's cell.
func judge(all []timingstats.CoreSummary, cores int, remote []bool) cell {
	r := verdict.JudgeLocality(all, verdict.LocalityOptions{Cores: cores})
	mean := verdict.JudgeLocality(all, verdict.LocalityOptions{Cores: cores, Rule: verdict.RuleMean})
	var truly int
	for _, yes := range remote {
		if yes {
			truly++
		}
	}
	hits, wrong := namedCores(r, remote)
	meanHits, meanWrong := namedCores(mean, remote)
	one := func(yes bool) int64 {
		if yes {
			return 1
		}
		return 0
	}
	return cell{
		Runs: 1, Remote: one(truly > 0), Caught: one(hits > 0), Named: one(truly > 0 && hits == truly),
		MeanCaught: one(meanHits > 0), Alarms: one(wrong > 0), MeanAlarms: one(meanWrong > 0),
		Incomplete: one(r.State == verdict.Incomplete),
	}
}

// namedCores is how many of the remote cores the report names, and how many
// others.
func namedCores(r verdict.LocalityReport, remote []bool) (hits, wrong int) {
	for _, c := range r.Cores {
		if c.State != verdict.Remote && c.State != verdict.Mixed {
			continue
		}
		if remote[c.Core.Core] {
			hits++
		} else {
			wrong++
		}
	}
	return hits, wrong
}

// TestVerdictAccuracy measures how often LOCALITY catches remote writes and how
// often it cries wolf, on the model clock, beside the plain mean rule. The long
// form is
//
//	go test -run TestVerdictAccuracy ./timingstats/verdict -v -accuracy.runs 10000 -timeout 2h \
//		-accuracy.state testdata/accuracy.json -accuracy.out testdata/accuracy.md
//
// with paths as seen from this package, and can be run in parts: with
// -accuracy.time it stops after so long, and goes on from its state.
func TestVerdictAccuracy(t *testing.T) {
	long := *accuracyRuns > 0
	runs := 20
	if long {
		runs = *accuracyRuns
	}
	var until time.Time
	switch {
	case *accuracyTime > 0:
		until = time.Now().Add(*accuracyTime)
	case !long:
		until = time.Now().Add(3 * time.Second)
	}
	planes := dataplanes(long)
	all := newCounts(planes)
	if err := all.load(*accuracyFile); err != nil {
		t.Fatal(err)
	}
	if long { // a run's memory is thrown away as a whole: collect more seldom
		defer debug.SetGCPercent(debug.SetGCPercent(400))
	}
	for _, cores := range gridCores {
		for i := range planes {
			began := time.Now()
			d := &planes[i]
			fresh := all.fill(t, fmt.Sprintf("%s|%d", d.Name, cores), runs, until, func() func(uint64, map[string]cell) error {
				var r runner
				return func(n uint64, into map[string]cell) error {
					return r.run(d, cores, n, func(k key, one cell) { into[k.String()] = one })
				}
			})
			if !long || fresh == 0 {
				continue
			}
			t.Logf("%s, %d cores: %d runs in %v", d.Name, cores, fresh, time.Since(began).Round(time.Millisecond))
			if err := all.save(*accuracyFile); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := all.save(*accuracyFile); err != nil {
		t.Error(err)
	}
	all.check(t, planes)
	summary, _ := all.tables(planes)
	t.Logf("\n%s", summary)
	if *accuracyOut != "" {
		if err := rewrite(*accuracyOut, pageBegin, all.text(planes), pageEnd); err != nil {
			t.Error(err)
		}
	}
}

// check holds every cell against the aims.
func (c *counts) check(t *testing.T, planes []dataplane) {
	t.Helper()
	filled := 0
	for k := range grid(planes) {
		if one, ok := c.Cells[k.String()]; ok {
			filled++
			one.check(t, k)
		}
	}
	if filled == 0 {
		t.Error("no cell has a run")
	}
}

// check holds a cell against the aims: at least 99.9 % caught where half of a
// core's writes are remote or more, at most 0.1 % false alarms.
func (c *cell) check(t *testing.T, k key) {
	t.Helper()
	const surely = 1e-5 // a cell that meets its aim fails by chance this often
	if k.aimed() && tooMany(c.Remote-c.Caught, c.Remote, aim, surely) {
		t.Errorf("%v: caught in %d of %d runs", k, c.Caught, c.Remote)
	}
	if tooMany(c.Alarms, c.Runs, aim, surely) {
		t.Errorf("%v: false alarms in %d of %d runs", k, c.Alarms, c.Runs)
	}
}

// tooMany says that k events of n have a probability below alpha if each has
// the probability p.
func tooMany(k, n int64, p, alpha float64) bool {
	return k > 0 && 1-distuv.Binomial{N: float64(n), P: p}.CDF(float64(k-1)) < alpha
}

// TestJudge: whom the harness counts as caught, and whom as falsely named.
func TestJudge(t *testing.T) {
	of := func(core int, slow, wild int) timingstats.CoreSummary {
		var samples []sample
		for i := range 100 {
			switch {
			case i < slow:
				samples = append(samples, sample{5000, timingstats.Slow})
			case i < slow+wild:
				samples = append(samples, sample{400_000, timingstats.Slow})
			default:
				samples = append(samples, sample{3, timingstats.Fast})
			}
		}
		return summary(core, samples)
	}
	for name, c := range map[string]struct {
		slow, wild [2]int
		remote     [2]bool
		want       cell
	}{
		"healthy":                  {want: cell{Runs: 1}},
		"healthy, one wild sample": {wild: [2]int{0, 1}, want: cell{Runs: 1, MeanAlarms: 1}},
		"caught":                   {slow: [2]int{100, 0}, remote: [2]bool{true, false}, want: cell{Runs: 1, Remote: 1, Caught: 1, Named: 1, MeanCaught: 1}},
		"one of two":               {slow: [2]int{100, 0}, remote: [2]bool{true, true}, want: cell{Runs: 1, Remote: 1, Caught: 1, MeanCaught: 1}},
		"by the mean only":         {slow: [2]int{4, 0}, remote: [2]bool{true, false}, want: cell{Runs: 1, Remote: 1, MeanCaught: 1}},
		"missed":                   {remote: [2]bool{true, false}, want: cell{Runs: 1, Remote: 1}},
		"the wrong one":            {slow: [2]int{0, 100}, remote: [2]bool{true, false}, want: cell{Runs: 1, Remote: 1, Alarms: 1, MeanAlarms: 1}},
		"both, one wrongly":        {slow: [2]int{100, 100}, remote: [2]bool{true, false}, want: cell{Runs: 1, Remote: 1, Caught: 1, Named: 1, MeanCaught: 1, Alarms: 1, MeanAlarms: 1}},
	} {
		all := []timingstats.CoreSummary{of(0, c.slow[0], c.wild[0]), of(1, c.slow[1], c.wild[1])}
		if got := judge(all, 2, c.remote[:]); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := judge([]timingstats.CoreSummary{of(0, 0, 0)}, 2, make([]bool, 2)); got != (cell{Runs: 1, Incomplete: 1}) {
		t.Errorf("a core unheard: %+v", got)
	}
}

// TestDataplanesDiffer: rows of the table are runs of their own.
func TestDataplanesDiffer(t *testing.T) {
	planes := dataplanes(false)
	of := map[string]string{}
	for i := range planes {
		d := &planes[i]
		var r runner
		var all strings.Builder
		for n := range uint64(3) {
			if err := r.run(d, 2, n+1, func(key, cell) {}); err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(&all, r.sink.cores)
		}
		if other, ok := of[all.String()]; ok {
			t.Errorf("%s and %s have the same samples", d.Name, other)
		}
		of[all.String()] = d.Name
	}
}
