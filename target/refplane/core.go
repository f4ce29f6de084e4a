package refplane

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"time"

	"tbl/target"
)

// core is one core: its storage, its own subtable's name and its counters.
// Everything but the mailbox belongs to the core's thread.
type core struct {
	p     *Plane
	id    int
	store store
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

	cmd   command // of the request under way
	dry   command // and its dry run
	key   []byte  // of a probe
	line  []byte  // log lines being made
	spent float64 // model clock: clicks that the request has cost so far
	debt  time.Duration
	busy  int64 // model clock: when the core is free again, ns
}

// Timers and values of the endpoints, from the wire contract.
const (
	loadTimeout  = 3600 // s
	probeTimeout = 60   // s, for OpProbe
	findTimeout  = 5    // s, for discovery
)

var one = []byte("1")

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
		*cmd = command{verb: verb(target.TableSet), sub: c.name, key: req.Key, value: req.Value, timeout: loadTimeout}
		c.write(cmd, false)
		if p.enumerate {
			*cmd = command{verb: verbWalk, sub: c.name}
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
		*cmd = command{verb: verbDump, sub: c.name, ans: ans}
		c.apply(cmd)
		ans.Count = cmd.n
	case target.OpProbe:
		c.probe(req, ans)
	case target.OpReset:
		if p.orphans && c.writes > 0 {
			c.forget()
		}
		c.ready()
		*cmd = command{verb: verb(target.TableDeleteAll), sub: c.name}
		c.apply(cmd)
		ans.Deleted = cmd.n
		c.writes, c.entries = 0, 0
	case target.OpResetName:
		if len(req.Subtable) == 0 {
			return bad("subtable is empty")
		}
		*cmd = command{verb: verb(target.TableDeleteAll), sub: req.Subtable}
		c.apply(cmd)
		ans.Deleted = cmd.n
		if bytes.Equal(req.Subtable, c.name) {
			c.entries = 0
		}
	case target.OpTable:
		return c.table(req, ans)
	case target.OpMeta:
		if len(req.Subtable) == 0 || len(req.Key) == 0 {
			return bad("subtable or key is empty")
		}
		*cmd = command{verb: verbMeta, sub: req.Subtable, key: req.Key, ans: ans}
		c.apply(cmd)
	case target.OpNames:
		*cmd = command{verb: verbNames, ans: ans}
		c.applyAt(c.id, cmd)
	case target.OpStats:
		for k := range p.cores {
			*cmd = command{verb: verbStats, ans: ans}
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
func (c *core) execHere(cmd *command, now uint32) {
	if cmd.verb == verbStats {
		st := &c.store
		cmd.ans.Stats = append(cmd.ans.Stats, target.CoreStats{
			Core: c.id, Subtables: st.subtables(), Entries: st.entries(), Bytes: st.bytes,
			WritesLocal: c.local, WritesRemote: c.remote, Expired: st.expired, Connections: c.conns,
		})
		return
	}
	c.store.exec(cmd, now)
}

// route is the owner of a subtable.
func (c *core) route(sub []byte) int {
	if len(sub) > 0 && len(c.name) > 0 && &sub[0] == &c.name[0] {
		return c.nameHome
	}
	return c.p.OwnerOf(sub)
}

// apply carries out cmd where its subtable lives.
func (c *core) apply(cmd *command) { c.applyAt(c.route(cmd.sub), cmd) }

func (c *core) applyAt(owner int, cmd *command) {
	switch {
	case c.p.model != nil:
		c.p.model.apply(c, owner, cmd)
	case owner == c.id:
		c.execHere(cmd, c.now)
	default:
		c.handOff(c.p.cores[owner], cmd)
	}
	switch {
	case !cmd.writes():
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
func (c *core) timed(cmd *command) int64 {
	owner := c.route(cmd.sub)
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

// warm runs through what cmd is about to do: a write of a new key is done and
// undone, so that the real one finds its code and every line of its data in
// the caches.
func (c *core) warm(cmd *command) {
	st := &c.store
	sub := st.subtable(cmd.sub)
	if sub != 0 && st.lookup(sub, cmd.key, st.keyTag(sub, cmd.key)) != 0 {
		return
	}
	if cmd.verb == verb(target.TableSet) && cmd.flags == 0 {
		for range 2 {
			c.dry = *cmd
			start := c.p.elapsed()
			c.execHere(&c.dry, c.now)
			c.p.clicks(c.p.elapsed() - start)
			sub = st.subtable(cmd.sub)
			st.remove(st.lookup(sub, cmd.key, st.keyTag(sub, cmd.key)))
		}
	}
}

// write is one load: counted, and timed and logged when its turn has come.
func (c *core) write(cmd *command, unique bool) {
	c.writes++
	if every := int64(c.p.cfg.LogSample); every > 0 && c.writes%every == 0 {
		clicks := c.timed(cmd)
		c.logSample(cmd.key, clicks, unique)
	} else {
		c.apply(cmd)
	}
	if cmd.created {
		c.entries++
	}
}

// bulk writes every line of body.
func (c *core) bulk(body []byte, ans *target.Answer) {
	cmd := &c.cmd
	*cmd = command{verb: verb(target.TableSet), sub: c.name, value: one, timeout: loadTimeout}
	wall := c.p.model == nil
	if line, _, _ := bytes.Cut(body, []byte{'\n'}); wall && len(line) > 0 && c.nameHome == c.id {
		cmd.key = line
		c.warm(cmd)
	}
	before, start := c.spent, c.p.elapsed()
	n := int64(0)
	for len(body) > 0 {
		var line []byte
		if i := bytes.IndexByte(body, '\n'); i >= 0 {
			line, body = body[:i], body[i+1:]
		} else {
			line, body = body, nil
		}
		if k := len(line); k > 0 && line[k-1] == '\r' {
			line = line[:k-1]
		}
		if len(line) == 0 {
			continue
		}
		cmd.key = line
		c.write(cmd, true)
		if n++; n%64 == 0 && wall {
			c.between()
		}
	}
	var clicks int64
	if wall {
		clicks = c.p.clicks(c.p.elapsed() - start)
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

// probe is one timed write into a named subtable.
func (c *core) probe(req *target.Request, ans *target.Answer) {
	name := req.Subtable
	if len(name) == 0 {
		name = []byte("uuid_01")
	}
	c.key = strconv.AppendInt(append(c.key[:0], "probe_"...), int64(c.id), 10)
	c.cmd = command{
		verb: verb(target.TableSet), sub: name, key: c.key,
		value: c.key[len("probe_"):], timeout: probeTimeout,
	}
	clicks := c.timed(&c.cmd)
	ans.Subtable = append(ans.Subtable, name...)
	ans.Clicks, ans.Entries = clicks, c.cmd.n
	ans.Local = clicks < c.p.cfg.Threshold
	c.logProbe(name, clicks, c.cmd.n, ans.Local)
}

// table is one timed command of the table.
func (c *core) table(req *target.Request, ans *target.Answer) error {
	keyless := req.Table == target.TableDeleteAll || req.Table == target.TableKeys
	switch {
	case req.Table > target.TableLifetime:
		return errVerb
	case len(req.Subtable) == 0:
		return bad("subtable is empty")
	case len(req.Key) == 0 && !keyless:
		return bad("key is empty")
	case req.Timeout < target.KeepSeconds || req.Lifetime < target.KeepSeconds:
		return bad("negative timer")
	}
	cmd := &c.cmd
	*cmd = command{
		verb: verb(req.Table), flags: req.Flags, sub: req.Subtable, key: req.Key, value: req.Value,
		timeout: req.Timeout, lifetime: req.Lifetime, ans: ans,
	}
	ans.Clicks = c.timed(cmd)
	ans.Local = ans.Clicks < c.p.cfg.Threshold
	ans.OwnerKnown, ans.Owner = true, c.p.OwnerOf(req.Subtable)
	return cmd.err
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

// discover tries names until one is as fast as only an own one can be, by
// three timings in a row: a lucky one must not win.
func (c *core) discover() {
	prefix := append(builtName(c.id), '_')
	key := []byte("probe")
	var name []byte
	var diff int64
	for try := 1; try <= c.p.cfg.MaxTries; try++ {
		name = strconv.AppendUint(append([]byte(nil), prefix...), c.rng.below(1_000_000), 10)
		own := true
		var first int64
		for round := 0; round < 3 && own; round++ {
			c.cmd = command{verb: verb(target.TableSet), sub: name, key: key, value: one, timeout: findTimeout}
			diff = c.timed(&c.cmd)
			if round == 0 {
				first = diff
			}
			own = diff < c.p.cfg.Threshold
		}
		c.cmd = command{verb: verb(target.TableDelete), sub: name, key: key}
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
