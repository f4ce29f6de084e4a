package refplane

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"time"

	"tbl/target"
	"tbl/target/refplane/table"
)

// core is one core: its storage, its own subtable's name and its counters.
// Everything but the mailbox belongs to the core's thread.
type core struct {
	p     *Plane
	id    int
	store table.Store
	rng   rng
	now   uint32 // unix seconds, renewed with every request
	box   mailbox

	name     []byte // the own subtable, empty before discovery
	nameHome int    // its owner, for routing only
	reloads  uint32 // Plane.reloads when the name was found
	writes   int64  // loads since the last reset
	entries  int64  // keys that these created

	local, remote int64 // writes into own storage and into others'
	conns         int64

	cmd   table.Command // of the request under way
	key   []byte        // of a probe
	line  []byte        // log lines being made
	stamp stamp         // of log lines
	head  string        // of log lines, behind the stamp
	spent float64       // model clock: clicks that the request has cost so far
	debt  time.Duration
	busy  int64 // model clock: when the core is free again, ns
	meter meter // wall clock: of the bulk load under way
}

// Timers and values of the endpoints, from the wire contract.
const (
	loadTimeout  = 3600 // s
	probeTimeout = 60   // s, for OpProbe
	findTimeout  = 5    // s, for discovery
)

// verbStats appends a core's counters to Ans.Stats.
const verbStats = table.NumVerbs

var (
	one     = []byte("1")
	findKey = []byte("probe") // of discovery's entries
)

// bad is a 400.
func bad(text string) error {
	return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: 400, Err: errors.New(text)}
}

// serve carries out one request on the accepting core.
func (c *core) serve(req *target.Request, ans *target.Answer) error {
	p := c.p
	ans.Core, ans.Slot = c.id, p.cfg.Slot
	c.conns++
	if p.stall != nil && p.stall.Core == c.id {
		c.stall()
	}
	if p.chatty != nil {
		c.chat(req)
	}
	if err := c.answer(req, ans); err != nil {
		var te *target.Error
		if !errors.As(err, &te) {
			err = bad(err.Error())
		}
		return err
	}
	return nil
}

func (c *core) answer(req *target.Request, ans *target.Answer) error {
	p := c.p
	cmd := &c.cmd
	switch req.Op {
	case target.OpInfo:
		ans.Cores = p.cfg.Cores
	case target.OpWhoami:
		c.ready()
		ans.Cores = p.cfg.Cores
		ans.Subtable = append(ans.Subtable, c.name...)
		ans.Writes, ans.Entries = c.writes, c.entries
	case target.OpLoad:
		if len(req.Key) == 0 {
			return bad("key is empty")
		}
		c.ready()
		*cmd = table.Command{Verb: table.Verb(target.TableSet), Sub: c.name, Key: req.Key, Value: req.Value, Timeout: loadTimeout}
		c.write(cmd, false)
		if p.enumerate {
			*cmd = table.Command{Verb: table.Walk, Sub: c.name}
			c.apply(cmd)
		}
		ans.Subtable = append(ans.Subtable, c.name...)
		ans.Key = append(ans.Key, req.Key...)
	case target.OpBulkLoad:
		if len(req.Body) == 0 {
			return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: 411, Err: errors.New("no body")}
		}
		if len(req.Body) > 16<<20 {
			return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: 413, Err: errors.New("body over 16 MiB")}
		}
		c.ready()
		c.bulk(req.Body, ans)
	case target.OpDump:
		c.ready()
		*cmd = table.Command{Verb: table.Dump, Sub: c.name, Ans: ans}
		c.apply(cmd)
		ans.Count = cmd.N
	case target.OpProbe:
		c.probe(req, ans)
	case target.OpReset:
		if p.orphans && c.writes > 0 {
			c.forget()
		}
		c.ready()
		ans.Deleted = c.clear(c.name)
		c.writes, c.entries = 0, 0
	case target.OpResetName:
		if len(req.Subtable) == 0 {
			return bad("subtable is empty")
		}
		ans.Deleted = c.clear(req.Subtable)
		if bytes.Equal(req.Subtable, c.name) {
			c.entries = 0
		}
	case target.OpTable:
		return c.table(req, ans)
	case target.OpMeta:
		if len(req.Subtable) == 0 || len(req.Key) == 0 {
			return bad("subtable or key is empty")
		}
		*cmd = table.Command{Verb: table.Meta, Sub: req.Subtable, Key: req.Key, Ans: ans}
		c.apply(cmd)
	case target.OpNames:
		*cmd = table.Command{Verb: table.Names, Ans: ans}
		c.applyAt(c.id, cmd)
	case target.OpStats:
		for k := range p.cores {
			*cmd = table.Command{Verb: verbStats, Ans: ans}
			c.applyAt(k, cmd)
		}
	case target.OpReload:
		p.reloads.Add(1)
	default:
		return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: 404, Err: errors.New("no such operation")}
	}
	return nil
}

// execHere carries out a command on this core's storage.
func (c *core) execHere(cmd *table.Command, now uint32) {
	if cmd.Verb == verbStats {
		st := &c.store
		cmd.Ans.Stats = append(cmd.Ans.Stats, target.CoreStats{
			Core: c.id, Subtables: st.Subtables(), Entries: st.Entries(), Bytes: st.Bytes(),
			WritesLocal: c.local, WritesRemote: c.remote, Expired: st.Expired(), Connections: c.conns,
		})
		return
	}
	c.store.Exec(cmd, now)
}

// route is the owner of a subtable.
func (c *core) route(sub []byte) int {
	if len(sub) > 0 && len(c.name) > 0 && &sub[0] == &c.name[0] {
		return c.nameHome
	}
	return c.p.OwnerOf(sub)
}

// apply carries out cmd where its subtable lives.
func (c *core) apply(cmd *table.Command) { c.applyAt(c.route(cmd.Sub), cmd) }

func (c *core) applyAt(owner int, cmd *table.Command) {
	switch {
	case c.p.model != nil:
		c.p.model.apply(c, owner, cmd)
	case owner == c.id:
		c.execHere(cmd, c.now)
	default:
		c.handOff(c.p.cores[owner], cmd)
	}
	switch {
	case !cmd.Writes():
	case owner == c.id:
		c.local++
	default:
		c.remote++
	}
}

// timed carries out cmd and returns its time in clicks. What is timed is
// reaching the owner and doing the work: where that is this core, the work is
// gone through once before, so that a core which its own thread's sleep left
// with cold caches is not taken for a distant one.
func (c *core) timed(cmd *table.Command) int64 {
	owner := c.route(cmd.Sub)
	var clicks int64
	if c.p.model != nil {
		before := c.spent
		c.applyAt(owner, cmd)
		clicks = int64(math.Round(c.spent - before))
	} else {
		if owner == c.id {
			c.warm(cmd)
		}
		start := c.p.elapsed()
		c.applyAt(owner, cmd)
		clicks = c.p.clicks(c.p.elapsed() - start)
	}
	if c.p.jitterShare > 0 && c.rng.float() < c.p.jitterShare {
		clicks = max(clicks, c.p.jitterClicks)
	}
	return clicks
}

// warm runs through what cmd is about to do, so that the real one finds its
// code and every line of its data in the caches.
func (c *core) warm(cmd *table.Command) {
	for range 2 {
		start := c.p.elapsed()
		c.store.Rehearse(cmd, c.now)
		c.p.clicks(c.p.elapsed() - start)
	}
}

// write is one load: counted, and timed and logged when its turn has come.
func (c *core) write(cmd *table.Command, unique bool) {
	c.writes++
	if every := int64(c.p.cfg.LogSample); every > 0 && c.writes%every == 0 {
		clicks := c.timed(cmd)
		c.logSample(cmd.Key, clicks, unique)
	} else {
		c.apply(cmd)
	}
	if cmd.Created {
		c.entries++
	}
}

// bulk writes every line of body. On the wall clock its clicks are, for more
// than one key, those of the thread's processor time and of waiting for other
// cores: see meter.
func (c *core) bulk(body []byte, ans *target.Answer) {
	cmd := &c.cmd
	*cmd = table.Command{Verb: table.Verb(target.TableSet), Sub: c.name, Value: one, Timeout: loadTimeout}
	wall := c.p.model == nil
	if line, _, _ := bytes.Cut(body, []byte{'\n'}); wall && len(line) > 0 && c.nameHome == c.id {
		cmd.Key = line
		c.warm(cmd)
		c.store.Ready(len(body) / (len(line) + 1))
	}
	before := c.spent
	if wall {
		c.meter.start(c.p)
	}
	n := int64(0)
	lines := bodyLines{rest: body}
	var keys [bulkGroup][]byte
	for {
		group := lines.next(keys[:])
		if len(group) == 0 {
			break
		}
		for _, key := range group {
			c.store.Expect(key)
		}
		for _, key := range group {
			cmd.Key = key
			c.write(cmd, true)
			if n++; n%64 == 0 && wall {
				c.between()
			}
		}
	}
	var clicks int64
	if wall {
		clicks = c.p.clicks(c.meter.end(c.p, n > 1))
	} else {
		clicks = int64(math.Round(c.spent - before))
	}
	if n == 1 && c.p.jitterShare > 0 && c.rng.float() < c.p.jitterShare {
		clicks = max(clicks, c.p.jitterClicks)
	}
	ans.Subtable = append(ans.Subtable, c.name...)
	ans.Written, ans.Clicks = n, clicks
	if n > 0 {
		ans.ClicksPerWrite = clicks / n
	}
}

// bulkGroup is how many keys of a bulk load are announced to the storage at
// once: as many as a processor waits for memory side by side.
const bulkGroup = 8

// bodyLines cuts a body into its lines without their ends, empty ones left out.
type bodyLines struct{ rest []byte }

// next fills group with the next lines, and returns those there were.
func (l *bodyLines) next(group [][]byte) [][]byte {
	n := 0
	for n < len(group) && len(l.rest) > 0 {
		line, rest, _ := bytes.Cut(l.rest, []byte{'\n'})
		l.rest = rest
		if k := len(line); k > 0 && line[k-1] == '\r' {
			line = line[:k-1]
		}
		if len(line) > 0 {
			group[n] = line
			n++
		}
	}
	return group[:n]
}

// clear deletes a subtable.
func (c *core) clear(name []byte) (deleted int64) {
	c.cmd = table.Command{Verb: table.Verb(target.TableDeleteAll), Sub: name}
	c.apply(&c.cmd)
	return c.cmd.N
}

// probe is one timed write into a named subtable.
func (c *core) probe(req *target.Request, ans *target.Answer) {
	name := req.Subtable
	if len(name) == 0 {
		name = []byte("uuid_01")
	}
	c.key = strconv.AppendInt(append(c.key[:0], "probe_"...), int64(c.id), 10)
	c.cmd = table.Command{
		Verb: table.Verb(target.TableSet), Sub: name, Key: c.key,
		Value: c.key[len("probe_"):], Timeout: probeTimeout,
	}
	clicks := c.timed(&c.cmd)
	ans.Subtable = append(ans.Subtable, name...)
	ans.Clicks, ans.Entries = clicks, c.cmd.N
	ans.Local = clicks < c.p.cfg.Threshold
	c.logProbe(name, clicks, c.cmd.N, ans.Local)
}

// table is one timed command of the table.
func (c *core) table(req *target.Request, ans *target.Answer) error {
	keyless := req.Table == target.TableDeleteAll || req.Table == target.TableKeys
	switch {
	case req.Table > target.TableLifetime:
		return bad("unknown table command")
	case len(req.Subtable) == 0:
		return bad("subtable is empty")
	case len(req.Key) == 0 && !keyless:
		return bad("key is empty")
	case req.Timeout < target.KeepSeconds || req.Lifetime < target.KeepSeconds:
		return bad("negative timer")
	}
	cmd := &c.cmd
	*cmd = table.Command{
		Verb: table.Verb(req.Table), Flags: req.Flags, Sub: req.Subtable, Key: req.Key, Value: req.Value,
		Timeout: req.Timeout, Lifetime: req.Lifetime, Ans: ans,
	}
	ans.Clicks = c.timed(cmd)
	ans.Local = ans.Clicks < c.p.cfg.Threshold
	ans.OwnerKnown, ans.Owner = true, c.p.OwnerOf(req.Subtable)
	return cmd.Err
}

// forget is what a reload does to one core: the name and the counters go,
// the entries stay.
func (c *core) forget() {
	c.name = c.name[:0]
	c.writes, c.entries = 0, 0
}

// ready makes sure that the core has a subtable of its own, or the one that
// the fault built.
func (c *core) ready() {
	if r := c.p.reloads.Load(); c.reloads != r {
		c.forget()
		c.reloads = r
	}
	if len(c.name) > 0 {
		return
	}
	if c.p.built {
		c.setName(builtName(c.id))
		return
	}
	c.discover()
}

// setName settles on a name. Its bytes must not move while route compares
// their place, so they are the core's own.
func (c *core) setName(name []byte) {
	c.name = append([]byte(nil), name...)
	c.nameHome = c.p.OwnerOf(c.name)
}

// builtName is a name nobody tried.
func builtName(id int) []byte {
	return strconv.AppendInt([]byte("localdb_tmm_"), int64(id), 10)
}

// attempt is one timed write of discovery's, in clicks. Its entry goes by itself
// where nobody removes it any more.
func (c *core) attempt(name []byte) int64 {
	c.cmd = table.Command{Verb: table.Verb(target.TableSet), Sub: name, Key: findKey, Value: one, Timeout: findTimeout}
	return c.timed(&c.cmd)
}

// discover tries names until one is as fast as only an own one can be, by
// three timings in a row: a lucky one must not win.
func (c *core) discover() {
	prefix := append(builtName(c.id), '_')
	var name []byte
	var diff int64
	for try := 1; try <= c.p.cfg.MaxTries; try++ {
		name = strconv.AppendUint(append([]byte(nil), prefix...), c.rng.below(1_000_000), 10)
		own := true
		var first int64
		for round := 0; round < 3 && own; round++ {
			diff = c.attempt(name)
			if round == 0 {
				first = diff
			}
			own = diff < c.p.cfg.Threshold
		}
		c.cmd = table.Command{Verb: table.Verb(target.TableDelete), Sub: name, Key: findKey}
		c.apply(&c.cmd)
		if own {
			c.setName(name)
			c.logFound(try, first)
			return
		}
		if c.p.model == nil {
			c.between()
		}
	}
	c.setName(name)
	c.logNotFound(diff)
	c.p.warnf("tmm %d found no subtable of its own in %d tries", c.id, c.p.cfg.MaxTries)
}

// stall sits out the core's pause, if one is on.
func (c *core) stall() {
	f := c.p.stall
	if into := c.p.sinceStart(c) % f.Every; into < f.Pause {
		c.pause(f.Pause - into)
	}
}

// chat is chatty-log's line for a request, and the wait for it.
func (c *core) chat(req *target.Request) {
	c.debt += c.p.chatty.line(c.p.sinceStart(c))
	if c.p.model != nil || c.debt > 200*time.Microsecond {
		start := c.p.elapsed()
		c.pause(c.debt)
		if c.p.model != nil {
			c.debt = 0
		} else {
			c.debt -= c.p.elapsed() - start // what was slept too long counts for later
		}
	}
	c.logChatty(req)
}
