package table

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tbl/target"
)

var oracleOps = flag.Int("oracle-ops", 1_000_000, "random operations of TestOracle")

// oracle is the table as a map: no index, no wheel, no memory to manage.
type oracle struct {
	subs map[string][]*oracleEntry // in order of creation
}

type oracleEntry struct {
	key, value        string
	created, touched  int64
	timeout, lifetime int64 // -1: indefinite
}

func (e *oracleEntry) dead(now int64) bool {
	return e.timeout >= 0 && e.touched+e.timeout <= now || e.lifetime >= 0 && e.created+e.lifetime <= now
}

func (o *oracle) sweep(now int64) {
	for s, es := range o.subs {
		es = slices.DeleteFunc(es, func(e *oracleEntry) bool { return e.dead(now) })
		if o.subs[s] = es; len(es) == 0 {
			delete(o.subs, s)
		}
	}
}

func (o *oracle) find(sub, key string) *oracleEntry {
	for _, e := range o.subs[sub] {
		if e.key == key {
			return e
		}
	}
	return nil
}

func given(s target.Seconds, def, present int64) int64 {
	switch s {
	case target.UnsetSeconds:
		return def
	case target.KeepSeconds:
		return present
	case target.Indefinite:
		return -1
	}
	return int64(s)
}

// do is Exec in plain words.
func (o *oracle) do(c *step, now int64) (result string, list []string, err error) {
	o.sweep(now)
	e := o.find(c.sub, c.key)
	touch := c.flags&target.FlagNoTouch == 0
	must, excl := c.flags&target.FlagMustExist != 0, c.flags&target.FlagExcl != 0
	create := func(v string) {
		o.subs[c.sub] = append(o.subs[c.sub], &oracleEntry{key: c.key, value: v, created: now, touched: now,
			timeout: given(c.timeout, 180, 180), lifetime: given(c.lifetime, -1, -1)})
	}
	overwrite := func() {
		e.value = c.value
		if touch {
			e.touched = now
		}
		e.timeout = given(c.timeout, 180, e.timeout)
		e.lifetime = given(c.lifetime, -1, e.lifetime)
	}
	switch c.op {
	case target.TableSet:
		switch {
		case e == nil && must:
			return "", nil, nil
		case e == nil:
			create(c.value)
		case excl:
			return e.value, nil, nil
		default:
			overwrite()
		}
		return c.value, nil, nil
	case target.TableAdd:
		if e != nil {
			return e.value, nil, nil
		}
		create(c.value)
		return c.value, nil, nil
	case target.TableReplace:
		if e == nil {
			return "", nil, nil
		}
		overwrite()
		return c.value, nil, nil
	case target.TableLookup:
		if e == nil {
			return "", nil, nil
		}
		if touch {
			e.touched = now
		}
		return e.value, nil, nil
	case target.TableIncr:
		delta, derr := int64(1), error(nil)
		if c.value != "" {
			if delta, derr = strconv.ParseInt(c.value, 10, 64); derr != nil {
				return "", nil, errNotNumber
			}
		}
		if e == nil {
			if must {
				return "", nil, nil
			}
			create(strconv.FormatInt(delta, 10))
			return strconv.FormatInt(delta, 10), nil, nil
		}
		old, perr := strconv.ParseInt(e.value, 10, 64)
		if perr != nil {
			return "", nil, errNotNumber
		}
		e.value = strconv.FormatInt(old+delta, 10)
		if touch {
			e.touched = now
		}
		return e.value, nil, nil
	case target.TableAppend:
		if e == nil {
			if must {
				return "", nil, nil
			}
			create(c.value)
			return c.value, nil, nil
		}
		e.value += c.value
		if touch {
			e.touched = now
		}
		return e.value, nil, nil
	case target.TableDelete:
		if e == nil {
			return "0", nil, nil
		}
		o.subs[c.sub] = slices.DeleteFunc(o.subs[c.sub], func(x *oracleEntry) bool { return x == e })
		return "1", nil, nil
	case target.TableDeleteAll:
		n := len(o.subs[c.sub])
		delete(o.subs, c.sub)
		return strconv.Itoa(n), nil, nil
	case target.TableKeys:
		if c.flags&target.FlagCount != 0 {
			return strconv.Itoa(len(o.subs[c.sub])), nil, nil
		}
		for _, e := range o.subs[c.sub] {
			list = append(list, e.key)
			if touch {
				e.touched = now
			}
		}
		return "", list, nil
	case target.TableTimeout, target.TableLifetime:
		if e == nil {
			return "-1", nil, nil
		}
		var v, since int64
		if c.op == target.TableTimeout {
			if c.timeout != target.UnsetSeconds && c.timeout != target.KeepSeconds {
				e.timeout = given(c.timeout, 0, 0)
				if touch {
					e.touched = now
				}
			}
			v, since = e.timeout, e.touched
		} else {
			if c.lifetime != target.UnsetSeconds {
				e.lifetime = given(c.lifetime, 0, e.lifetime)
			}
			v, since = e.lifetime, e.created
		}
		if v < 0 {
			return "indefinite", nil, nil
		}
		if c.flags&target.FlagRemaining != 0 {
			v = max(0, since+v-now)
		}
		return strconv.FormatInt(v, 10), nil, nil
	}
	panic("unknown command")
}

// step is one random operation, or the passing of time.
type step struct {
	wait              int64 // seconds before the operation
	sweep             int   // budget of an expiry step before it
	op                target.TableOp
	flags             target.TableFlags
	sub, key, value   string
	timeout, lifetime target.Seconds
}

func (s step) String() string {
	return fmt.Sprintf("wait %d sweep %d: op %d flags %05b sub %q key %q value %q timeout %d lifetime %d",
		s.wait, s.sweep, s.op, s.flags, s.sub, s.key, short(s.value), s.timeout, s.lifetime)
}

func short(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("%s…(%d)", s[:40], len(s))
	}
	return s
}

func randomStep(r *rand.Rand) step {
	s := step{op: target.TableOp(r.IntN(int(target.TableLifetime) + 1))}
	if r.IntN(3) == 0 {
		s.op = target.TableSet
	}
	if s.op == target.TableDeleteAll && r.IntN(4) > 0 {
		s.op = target.TableSet
	}
	if r.IntN(2) == 0 {
		s.flags = target.TableFlags(r.IntN(32))
	}
	s.sub = fmt.Sprintf("sub%d", r.IntN(5))
	s.key = fmt.Sprintf("key%d", r.IntN(40))
	switch r.IntN(12) {
	case 0:
		s.value = strings.Repeat("x", r.IntN(600))
	case 1:
		s.value = strings.Repeat("y", r.IntN(3000))
		if r.IntN(20) == 0 {
			s.value = strings.Repeat("z", r.IntN(70_000))
		}
	case 2, 3:
		s.value = "word"
	case 4:
	default:
		s.value = strconv.Itoa(r.IntN(2000) - 1000)
	}
	timers := []target.Seconds{0, 0, target.KeepSeconds, target.Indefinite, 1, 2, 30, 63, 64, 65, 200, 4095, 4096, 5000, 300_000}
	s.timeout, s.lifetime = timers[r.IntN(len(timers))], timers[r.IntN(len(timers))]
	switch r.IntN(40) {
	case 0:
		s.wait = int64(r.IntN(5000))
	case 1, 2, 3:
		s.wait = int64(r.IntN(70))
	case 4, 5, 6, 7:
		s.wait = 1
	}
	if r.IntN(200) == 0 {
		s.wait = int64(r.IntN(400_000))
	}
	s.sweep = []int{0, 0, 1, 3, 1000}[r.IntN(5)]
	return s
}

// replay runs the steps on both and returns the first difference.
func replay(steps []step, walkEvery int) error {
	st := new(Store)
	now := int64(1_000_000)
	st.Init(7, uint32(now))
	o := &oracle{subs: map[string][]*oracleEntry{}}
	var ans target.Answer
	for i := range steps {
		s := &steps[i]
		now += s.wait
		if s.sweep > 0 {
			st.Tidy(uint32(now), s.sweep)
		}
		ans.Reset()
		c := Command{Verb: Verb(s.op), Flags: s.flags, Sub: []byte(s.sub), Key: []byte(s.key), Value: []byte(s.value),
			Timeout: s.timeout, Lifetime: s.lifetime, Ans: &ans}
		st.Exec(&c, uint32(now))
		result, list, err := o.do(s, now)
		if err != c.Err {
			return fmt.Errorf("step %d %v: error %v, want %v", i, s, c.Err, err)
		}
		if err != nil {
			continue
		}
		if string(ans.Result) != result {
			return fmt.Errorf("step %d %v: result %q, want %q", i, s, short(string(ans.Result)), short(result))
		}
		if !slices.EqualFunc(ans.List, list, func(a []byte, b string) bool { return string(a) == b }) {
			return fmt.Errorf("step %d %v: list %q, want %q", i, s, ans.List, list)
		}
		if i%walkEvery == 0 || i == len(steps)-1 {
			if err := walk(st); err != nil {
				return fmt.Errorf("after step %d %v: %w", i, s, err)
			}
		}
	}
	for !st.Tidy(uint32(now), 10) {
	}
	if st.ghosts != 0 || st.ghostBytes != 0 {
		return fmt.Errorf("at the end %d ghosts of %d bytes", st.ghosts, st.ghostBytes)
	}
	o.sweep(now)
	n := 0
	for _, es := range o.subs {
		n += len(es)
	}
	if int(st.Entries()) != n || int(st.Subtables()) != len(o.subs) {
		return fmt.Errorf("at the end %d entries in %d subtables, want %d in %d", st.Entries(), st.Subtables(), n, len(o.subs))
	}
	for sub, es := range o.subs {
		for _, e := range es {
			ans.Reset()
			c := Command{Verb: Meta, Sub: []byte(sub), Key: []byte(e.key), Ans: &ans}
			st.Exec(&c, uint32(now))
			m := ans.Meta
			if !m.Found || m.Created != e.created || m.Touched != e.touched || int64(m.Timeout) != e.timeout || int64(m.Lifetime) != e.lifetime {
				return fmt.Errorf("at the end %s/%s: meta %+v, want %+v", sub, e.key, m, *e)
			}
		}
	}
	return walk(st)
}

// walk looks at everything stored and compares it with the counters.
func walk(st *Store) error {
	var subs, entries, timed, bytesSum int
	var err error
	fail := func(format string, args ...any) bool {
		if err == nil {
			err = fmt.Errorf(format, args...)
		}
		return false
	}
	size := func(ref uint32) int { return int(st.size(ref)) }
	ghosts, ghostBytes := 0, 0
	for sub := st.dropped; sub != 0; sub = st.rec(sub).valLen {
		ghostBytes += size(sub)
		for ref := st.rec(sub).next; ref != sub; ref = st.rec(ref).next {
			ghosts++
			ghostBytes += size(ref)
		}
	}
	if ghosts != int(st.ghosts) || ghostBytes != int(st.ghostBytes) {
		return fmt.Errorf("walked %d ghosts of %d bytes; counted %d of %d", ghosts, ghostBytes, st.ghosts, st.ghostBytes)
	}
	st.names.each(func(tag, sub uint32) bool {
		subs++
		bytesSum += size(sub)
		if st.nameTag(st.key(sub)) != tag || st.subtable(bytes.Clone(st.key(sub))) != sub {
			return fail("subtable %d is not where its name says", sub)
		}
		n, weight := 0, 0
		for prev, ref := sub, st.rec(sub).next; ref != sub; {
			r := st.rec(ref)
			if r.prev != prev || r.sub != sub {
				return fail("entry %d: wrong neighbour or subtable", ref)
			}
			if st.lookup(sub, st.key(ref), st.keyTag(sub, st.key(ref))) != ref {
				return fail("entry %d is not found", ref)
			}
			if _, ok := deadline(r); ok != (r.wnxt != 0) {
				return fail("entry %d: timer %v, in the wheel %v", ref, ok, r.wnxt != 0)
			}
			if r.wnxt != 0 {
				timed++
				if st.rec(r.wnxt).wprev != ref || st.rec(r.wprev).wnxt != ref {
					return fail("entry %d: wheel is torn", ref)
				}
			}
			n++
			weight += size(ref)
			prev, ref = ref, r.next
		}
		bytesSum += weight
		if weight != int(st.rec(sub).weight()) {
			return fail("subtable %d weighs %d, has %d", sub, st.rec(sub).weight(), weight)
		}
		if n == 0 || n != int(st.rec(sub).touched) {
			return fail("subtable %d counts %d, has %d", sub, st.rec(sub).touched, n)
		}
		entries += n
		return true
	})
	if err != nil {
		return err
	}
	used := 0
	for i := range st.chunks {
		used += int(st.chunks[i].used)
	}
	switch {
	case subs != int(st.Subtables()), entries != int(st.Entries()), ghosts == 0 && timed != st.wheel.count:
		return fmt.Errorf("walked %d subtables, %d entries, %d timers; counted %d, %d, %d", subs, entries, timed, st.Subtables(), st.Entries(), st.wheel.count)
	case bytesSum != int(st.Bytes()), st.dropped == 0 && used != subs+entries:
		return fmt.Errorf("walked %d bytes in %d records; counted %d in %d", bytesSum, subs+entries, st.Bytes(), used)
	}
	indexed := 0
	st.keys.each(func(_, _ uint32) bool { indexed++; return true })
	if indexed != entries+ghosts {
		return fmt.Errorf("index holds %d, lists %d", indexed, entries+ghosts)
	}
	return nil
}

// shrink drops steps as long as what is left still fails.
func shrink(steps []step, fails func([]step) bool) []step {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(steps); {
			if fewer := slices.Delete(slices.Clone(steps), at, at+size); fails(fewer) {
				steps = fewer
			} else {
				at += size
			}
		}
	}
	return steps
}

func TestOracle(t *testing.T) {
	t.Parallel()
	const perSeed = 2000
	total := *oracleOps
	if testing.Short() {
		total = min(total, 100_000)
	}
	for seed := uint64(1); int(seed)*perSeed <= total; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		steps := make([]step, perSeed)
		for i := range steps {
			steps[i] = randomStep(r)
		}
		if err := replay(steps, 97); err != nil {
			steps = shrink(steps, func(s []step) bool { return replay(s, 1) != nil })
			var b strings.Builder
			for _, s := range steps {
				fmt.Fprintln(&b, s)
			}
			t.Fatalf("seed %d: %v\nshrunk to: %v\n%s", seed, err, replay(steps, 1), b.String())
		}
	}
}

// TestShrinkFindsTheCulprits makes sure that a failure is reported by the
// steps that matter.
func TestShrinkFindsTheCulprits(t *testing.T) {
	steps := make([]step, 1000)
	steps[17].wait, steps[800].wait = 3, 5
	got := shrink(steps, func(s []step) bool {
		var sum int64
		for _, s := range s {
			sum += s.wait
		}
		return sum == 8
	})
	if len(got) != 2 {
		t.Errorf("shrunk to %d steps, want 2", len(got))
	}
}

// FuzzTable lets the fuzzer choose the operations: four bytes each.
func FuzzTable(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x00\x01\x02\x03\x06\x01\x02\x03"))
	f.Add(bytes.Repeat([]byte("\x05abc"), 40))
	f.Fuzz(func(t *testing.T, script []byte) {
		var steps []step
		for ; len(script) >= 4 && len(steps) < 2000; script = script[4:] {
			s := randomStep(rand.New(rand.NewPCG(uint64(script[2]), uint64(script[3]))))
			s.op = target.TableOp(script[0] % byte(target.TableLifetime+1))
			s.key = fmt.Sprintf("key%d", script[1])
			steps = append(steps, s)
		}
		if err := replay(steps, 16); err != nil {
			t.Error(err)
		}
	})
}
