package verdict_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tbl/target"
	"tbl/target/refplane"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

var (
	accuracyRuns = flag.Int("accuracy.runs", 0, "seeded runs per cell of the accuracy table; 0: the short form")
	accuracyTime = flag.Duration("accuracy.time", 0, "stop beginning new runs after so long; 0: never in the long form, 3s in the short one")
	accuracyFile = flag.String("accuracy.state", "", "keep the counts in this JSON file and go on from it: the long form in parts")
	accuracyOut  = flag.String("accuracy.out", "", "write the table to this Markdown file")
)

// dataplanes are those whose runs the table is made of. From each run the first
// 25, 100 and 1,000 samples of each core are judged.
func dataplanes() []dataplane {
	all := []int{25, 100, 1000}
	out := []dataplane{
		{Name: "healthy, 1 % jitter", sizes: all, shares: []float64{1, 0.75, 0.5, 0.25, 0.1, 0.05}},
		{Name: "healthy, 2 % jitter", fault: "jitter=2%", sizes: all},
		{Name: "`deterministic-names`", fault: "deterministic-names", sizes: all},
	}
	for _, k := range refplane.FaultKinds() {
		switch k.Name {
		case refplane.DeterministicNames, refplane.Jitter:
		case refplane.DeadCore:
			out = append(out, dataplane{Name: "`dead-core=1`", fault: "dead-core=1", sizes: all[:2]})
		default: // faults that are no matter of where writes go
			out = append(out, dataplane{Name: "`" + k.Name + "`", fault: k.Name, sizes: all[:2]})
		}
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

func (c *cell) add(o cell) {
	c.Runs += o.Runs
	c.Remote += o.Remote
	c.Caught += o.Caught
	c.Named += o.Named
	c.MeanCaught += o.MeanCaught
	c.Alarms += o.Alarms
	c.MeanAlarms += o.MeanAlarms
	c.Incomplete += o.Incomplete
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

// sampleSink takes the dataplane's log and keeps its samples, core by core.
type sampleSink struct {
	cores [][]sample
	name  []string // subtable of each core
	rest  []byte
}

func (s *sampleSink) Write(p []byte) (int, error) {
	b := p
	if len(s.rest) > 0 {
		b = append(s.rest, p...)
	}
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		s.line(b[:i])
		b = b[i+1:]
	}
	s.rest = append([]byte(nil), b...)
	return len(p), nil
}

func (s *sampleSink) line(line []byte) {
	_, msg, ok := bytes.Cut(line, []byte(": tmm="))
	i := bytes.LastIndex(line, []byte(" clicks="))
	if !ok || i < 0 || line[len(line)-1] != ')' {
		return
	}
	num := func(b []byte) (n int64) {
		for _, c := range b {
			if c < '0' || c > '9' {
				break
			}
			n = n*10 + int64(c-'0')
		}
		return n
	}
	core := int(num(msg))
	tag := timingstats.Fast
	if bytes.Contains(line[i:], []byte("SLOW")) {
		tag = timingstats.Slow
	}
	s.cores[core] = append(s.cores[core], sample{num(line[i+len(" clicks="):]), tag})
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

// run writes until every core has as many samples as the largest size wants,
// and judges every cell of the dataplane.
func (d *dataplane) run(cores int, seed uint64, count func(key, cell)) (err error) {
	most := d.sizes[len(d.sizes)-1]
	sink := &sampleSink{cores: make([][]sample, cores), name: make([]string, cores)}
	cfg := refplane.Config{Cores: cores, Seed: seed, Clock: refplane.Model, Log: sink, LogSample: 1}
	if d.fault != "" {
		fault, err := refplane.ParseFault(d.fault)
		if err != nil {
			return err
		}
		cfg.Faults = []refplane.Fault{fault}
	}
	p, err := refplane.New(cfg)
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
	var name []byte
	left := make([]int, cores)
	for i := range left {
		left[i] = most
	}
	open := cores * most
	victim := rng.IntN(cores)
	var remote []sample // of the victim
	foreign := []byte("elsewhere")
	for i := 0; len(d.shares) > 0 && p.OwnerOf(foreign) == victim; i++ {
		foreign = fmt.Appendf(nil, "elsewhere_%d", i)
	}
	for try := 0; open > 0 && try < 40*cores*most; try++ {
		via := conn(rng)
		core := p.CoreOf(via)
		if left[core] == 0 {
			continue
		}
		left[core]--
		open--
		name = strconv.AppendInt(name[:0], int64(try), 10)
		_ = p.Do(ctx, &target.Request{Op: target.OpLoad, Conn: via, Key: name, Value: name[:1]}, &ans) // flap: no sample then
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

	truth := make([]bool, cores)
	for core, name := range sink.name {
		truth[core] = name != "" && p.OwnerOf([]byte(name)) != core
	}
	for _, n := range d.sizes {
		var all []timingstats.CoreSummary
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
			all[at] = summary(victim, append(remote[:k:k], sink.cores[victim][:n-k]...))
			truth[victim] = true
			count(key{d.Name, share, cores, n}, judge(all, cores, truth))
			truth[victim] = false
		}
	}
	return nil
}

func summary(core int, samples []sample) timingstats.CoreSummary {
	var r timingstats.CoreRecorder
	for _, s := range samples {
		r.Add(s.clicks, s.tag, 1)
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

// counts is all cells, and how far each kind of runs has come; it is what the
// state file holds.
type counts struct {
	mu    sync.Mutex
	Cells map[string]cell
	Done  map[string]int64 // seeds run, by dataplane and cores
}

func (c *counts) load(file string) error {
	c.Cells, c.Done = map[string]cell{}, map[string]int64{}
	b, err := os.ReadFile(file)
	if file == "" || os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(b, c)
}

func (c *counts) save(file string) error {
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

// fill runs one kind of runs on all processors until there are enough of them
// or the time is up.
func (c *counts) fill(t *testing.T, d *dataplane, cores, runs int, until time.Time) {
	t.Helper()
	id := fmt.Sprintf("%s|%d", d.Name, cores)
	var next atomic.Int64
	next.Store(c.Done[id])
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for until.IsZero() || time.Now().Before(until) {
				seed := next.Add(1)
				if seed > int64(runs) {
					break
				}
				mine := map[key]cell{}
				if err := d.run(cores, uint64(seed), func(k key, one cell) { mine[k] = one }); err != nil {
					t.Errorf("%s, %d cores, seed %d: %v", d.Name, cores, seed, err)
					break
				}
				c.mu.Lock()
				c.Done[id] = max(c.Done[id], seed)
				for k, one := range mine {
					sum := c.Cells[k.String()]
					sum.add(one)
					c.Cells[k.String()] = sum
				}
				c.mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// TestVerdictAccuracy measures how often LOCALITY catches remote writes and how
// often it cries wolf, on the model clock, beside the plain mean rule. The long
// form is
//
//	go test -run TestVerdictAccuracy ./timingstats/verdict -v -accuracy.runs 10000 -timeout 2h
//
// and can be run in parts with -accuracy.time and -accuracy.state.
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
	var all counts
	if err := all.load(*accuracyFile); err != nil {
		t.Fatal(err)
	}
	planes := dataplanes()
	for _, cores := range []int{2, 4, 16, 64} { // the quick ones first
		for i := range planes {
			d := &planes[i]
			if !long {
				d.sizes = d.sizes[:2]
			}
			all.fill(t, d, cores, runs, until)
		}
	}
	if *accuracyFile != "" {
		if err := all.save(*accuracyFile); err != nil {
			t.Error(err)
		}
	}
	summary, table := all.tables(t, planes)
	t.Logf("\n%s", summary)
	if *accuracyOut != "" {
		text := "Over all sizes, with the least favourable one beside it:\n\n" + summary +
			"\nOne by one; in brackets the 95 % bounds (Clopper–Pearson):\n\n" + table
		if err := os.WriteFile(*accuracyOut, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// check holds a cell against the aims: at least 99.9 % caught where half of a
// core's writes are remote or more, at most 0.1 % false alarms.
func (c *cell) check(t *testing.T, k key) {
	t.Helper()
	const surely = 1e-5 // a cell that meets its aim fails by chance this often
	if half := k.share == 0 || k.share >= 0.5; half && tooMany(c.Remote-c.Caught, c.Remote, 0.001, surely) {
		t.Errorf("%v: caught in %d of %d runs", k, c.Caught, c.Remote)
	}
	if tooMany(c.Alarms, c.Runs, 0.001, surely) {
		t.Errorf("%v: false alarms in %d of %d runs", k, c.Alarms, c.Runs)
	}
}

// tooMany says that k events of n have a probability below alpha if each has
// the probability p.
func tooMany(k, n int64, p, alpha float64) bool {
	return k > 0 && 1-distuv.Binomial{N: float64(n), P: p}.CDF(float64(k-1)) < alpha
}
