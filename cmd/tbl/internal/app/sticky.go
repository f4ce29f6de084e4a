package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/prober/stickiness"
	"tbl/target"
	"tbl/target/cluster"
	"tbl/target/refplane"
	"tbl/target/remote"
)

func (a *app) stickyCommand() *cli.Command {
	return &cli.Command{
		Usage: "run transactions over several nodes and find out whether each stays on one",
		Description: "Three forms: embedded nodes (--nodes), remote nodes balanced by tbl (--target, repeated),\n" +
			"or somebody else's load balancer (--via).",
		Flags: flags([]cli.Flag{
			intFlag("", "transactions", 10_000, "number of transactions"),
			intFlag("", "invocations", 5, "invocations per transaction, at least 2"),
			intFlag("", "workers", 32, "transactions at a time"),
			intFlag("", "nodes", 3, "embedded nodes, 1 to 64; they are called 1, 2, …"),
			stringFlag("", "via", "", "base `URL` of a load balancer to ask through, one cookie jar per transaction"),
			stringFlag("", "path", "/info", "what to GET at --via"),
			among(stringFlag("", "node-from", remote.NodeFrom{}.String(), "where an answer to --via names its node: header:NAME, cookie:NAME or body:REGEXP"), "header:", "cookie:", "body:"),
			among(stringsFlag("", "fail", "make requests to a node fail, `KIND@NODE[:P]` with probability P (repeatable); kinds: "+strings.Join(cluster.FaultNames(), ", ")), failWords()...),
			stringsFlag("", "kill", "let a node fail and leave, `NODE@WHEN`: a percentage of the run or a duration (repeatable)"),
			stringsFlag("", "join", "let a node join, or return, `NODE@WHEN` (repeatable)"),
			intFlag("", "examples", 10, "split and refused transactions to list, 0: none"),
		}, clusterFlags(), commandFlags()),
		Action: a.sticky,
	}
}

// failWords are the kinds of failures as one begins to type them.
func failWords() []string {
	out := cluster.FaultNames()
	for i := range out {
		out[i] += "@"
	}
	return out
}

// stickyRun is a checked command line of sticky.
type stickyRun struct {
	a       *app
	cfg     stickiness.Config
	opts    *targetOptions
	balance clusterOptions
	nodes   int // embedded ones, 0: none
	via     remote.ViaConfig
	faults  []nodeFault
	events  []nodeEvent
}

// nodeFault is one --fail.
type nodeFault struct {
	node  string
	fault cluster.Fault
}

// nodeEvent is one --kill or --join.
type nodeEvent struct {
	node  string
	join  bool
	at    int64         // invocations started, when share is set
	after time.Duration // else
	share bool
}

func (a *app) sticky(c *cli.Context) error {
	r := &stickyRun{a: a}
	if err := r.parse(c); err != nil {
		return err
	}
	out, err := a.output(c)
	if err != nil {
		return err
	}
	defer out.Close()
	if c.Bool("dry-run") {
		return a.plan(out, r.opts, needs{rate: fmt.Sprintf("%d transactions of %d requests as fast as answered, %d at a time",
			r.cfg.Transactions, r.cfg.Invocations, r.cfg.Workers)})
	}
	unwatch, err := a.startMetrics(c, r.describe())
	if err != nil {
		return err
	}
	defer unwatch()
	tgt, err := r.open(c.Context)
	if err != nil {
		return err
	}
	if a.watch != nil {
		tgt = &watchedTarget{tgt, a.watch}
	}
	out.start(tgt.Clock())
	r.cfg.Progress = new(stickiness.Progress)
	stop := a.progress(c, func() render.Snapshot {
		p := r.cfg.Progress
		return render.Snapshot{Label: "sticky", Done: p.Ended.Load(), Total: p.Planned.Load(), Errors: p.Errors.Load()}
	})
	res, err := stickiness.Run(c.Context, tgt, r.cfg)
	stop()
	err = errors.Join(err, tgt.Close())
	if res == nil {
		return usagef("%w", err)
	}
	if werr := out.finish(c.Context, render.Sticky(res)); werr != nil {
		return werr
	}
	return err
}

// describe names what the transactions go to.
func (r *stickyRun) describe() string {
	if r.nodes > 0 && r.via.URL == "" {
		return fmt.Sprintf("%d embedded nodes", r.nodes)
	}
	return r.opts.describe()
}

// parse checks the flags.
func (r *stickyRun) parse(c *cli.Context) error {
	if err := atLeast(c, 1, "transactions", "workers"); err != nil {
		return err
	}
	if err := atLeast(c, 0, "examples"); err != nil {
		return err
	}
	if n := c.Int("invocations"); n < 2 {
		return usagef("--invocations %d: want at least 2, one alone cannot split", n)
	}
	r.cfg = stickiness.Config{
		Transactions: c.Int("transactions"), Invocations: c.Int("invocations"), Workers: c.Int("workers"),
		MaxErrors: maxErrors(c), Examples: c.Int("examples"), Cause: refusal,
	}
	if r.cfg.Examples == 0 {
		r.cfg.Examples = -1
	}
	if c.IsSet("via") {
		return r.parseVia(c)
	}
	if g := given(c, "path", "node-from"); len(g) > 0 {
		return usagef("--%s is for --via", g[0])
	}
	var err error
	if r.opts, err = r.a.targetOptions(c); err != nil {
		return err
	}
	if r.balance, err = parseCluster(c); err != nil {
		return err
	}
	var names []string
	if len(r.opts.urls) > 0 {
		if c.IsSet("nodes") {
			return usagef("--nodes is for embedded nodes: drop it, or drop the targets")
		}
		names = r.opts.urls
	} else {
		if r.nodes = c.Int("nodes"); r.nodes < 1 || r.nodes > 64 {
			return usagef("--nodes %d: want 1 to 64", r.nodes)
		}
		if r.opts.plane.Clock != refplane.Wall {
			return usagef("--clock %s: each node would have a time of its own, want wall", c.String("clock"))
		}
		for i := range r.nodes {
			names = append(names, strconv.Itoa(i+1))
		}
	}
	for _, s := range c.StringSlice("fail") {
		f, err := parseNodeFault(s, names)
		if err != nil {
			return usagef("--fail %q: %w", s, err)
		}
		r.faults = append(r.faults, f)
	}
	total := int64(r.cfg.Transactions) * int64(r.cfg.Invocations)
	for _, flag := range []string{"kill", "join"} {
		for _, s := range c.StringSlice(flag) {
			e, err := parseNodeEvent(s, names, total)
			if err != nil {
				return usagef("--%s %q: %w", flag, s, err)
			}
			if e.join = flag == "join"; e.share && !e.join {
				// Not between two transactions of a single worker, but within one.
				e.at += int64(r.cfg.Invocations / 2)
			}
			r.events = append(r.events, e)
		}
	}
	return nil
}

// parseVia checks the flags of the black box.
func (r *stickyRun) parseVia(c *cli.Context) error {
	if g := given(c, "target", "host", "nodes", "fail", "kill", "join", "policy", "sticky", "repin", "pin-at", "transport", "cores", "fault", "dag", "clock", "log"); len(g) > 0 {
		return usagef("--%s and --via: somebody else balances behind --via, drop one of them", g[0])
	}
	if err := checkURL(c.String("via")); err != nil {
		return usagef("%s", strings.Replace(err.Error(), "--target", "--via", 1))
	}
	if c.Duration("timeout") <= 0 {
		return usagef("--timeout %v: want more than 0", c.Duration("timeout"))
	}
	r.opts = &targetOptions{a: r.a, urls: []string{c.String("via")}}
	if err := r.opts.remoteConfig(c); err != nil {
		return err
	}
	from, err := remote.ParseNodeFrom(c.String("node-from"))
	if err != nil {
		return usagef("--node-from %w", err)
	}
	u, err := url.JoinPath(c.String("via"), c.String("path"))
	if err != nil {
		return usagef("--path %q: %w", c.String("path"), err)
	}
	rc := r.opts.remote
	r.via = remote.ViaConfig{
		URL: u, NodeFrom: from, Timeout: rc.Timeout, Binds: rc.Binds, Header: rc.Header, Token: rc.Token, Insecure: rc.Insecure, RootCAs: rc.RootCAs,
	}
	return nil
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

// parseNodeFault reads KIND@NODE[:P].
func parseNodeFault(s string, names []string) (nodeFault, error) {
	kind, rest, ok := strings.Cut(s, "@")
	if !ok {
		return nodeFault{}, errors.New("want KIND@NODE or KIND@NODE:P")
	}
	k, err := cluster.ParseFaultKind(kind)
	if err != nil {
		return nodeFault{}, err
	}
	p := 1.0
	node, err := nodeNamed(rest, names)
	if i := strings.LastIndexByte(rest, ':'); err != nil && i >= 0 {
		if p, err = strconv.ParseFloat(rest[i+1:], 64); err != nil || !(p > 0 && p <= 1) {
			return nodeFault{}, fmt.Errorf("probability %q: want more than 0, up to 1", rest[i+1:])
		}
		node, err = nodeNamed(rest[:i], names)
	}
	return nodeFault{node, cluster.Fault{Kind: k, P: p}}, err
}

// parseNodeEvent reads NODE@50% or NODE@3s; total is the run's invocations.
func parseNodeEvent(s string, names []string, total int64) (nodeEvent, error) {
	i := strings.LastIndexByte(s, '@')
	if i < 0 {
		return nodeEvent{}, errors.New("want NODE@WHEN")
	}
	node, err := nodeNamed(s[:i], names)
	if err != nil {
		return nodeEvent{}, err
	}
	e := nodeEvent{node: node}
	if pct, ok := strings.CutSuffix(s[i+1:], "%"); ok {
		share, err := strconv.ParseFloat(pct, 64)
		if err != nil || !(share >= 0 && share <= 100) {
			return e, fmt.Errorf("%q: want a percentage from 0%% to 100%%", s[i+1:])
		}
		e.share, e.at = true, int64(share/100*float64(total))
		return e, nil
	}
	if e.after, err = time.ParseDuration(s[i+1:]); err != nil || e.after < 0 {
		return e, fmt.Errorf("%q: want a percentage such as 50%% or a duration such as 3s", s[i+1:])
	}
	return e, nil
}

// open makes the target of the run, with its faults and events. Nothing is
// sent.
func (r *stickyRun) open(context.Context) (target.Target, error) {
	if r.via.URL != "" {
		v, err := remote.NewVia(r.via)
		if err != nil {
			return nil, usagef("--via: %w", err)
		}
		r.cfg.Begin = func(ctx context.Context, _ int64) (context.Context, func()) { return v.Session(ctx), func() {} }
		return v, nil
	}
	var nodes []cluster.Node
	var err error
	if r.nodes > 0 {
		nodes, err = embeddedNodes(r.opts.plane, r.nodes)
	} else {
		nodes, err = r.opts.remoteNodes(r.balance.transport)
	}
	if err != nil {
		return nil, err
	}
	seed := r.balance.cfg.Seed
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
				for _, x := range r.faults {
					if x.node == n.Name {
						list = append(list, x.fault)
					}
				}
				f.Set(list...)
				faulty[n.Name], n.Targets[via] = f, f
			}
		}
	}
	p, fam, err := r.balance.open(nodes, r.absent())
	if err != nil {
		return nil, err
	}
	r.cfg.Begin = func(ctx context.Context, _ int64) (context.Context, func()) {
		ctx, tx := p.Begin(ctx)
		return ctx, tx.End
	}
	if len(r.events) > 0 {
		r.cfg.Before = r.schedule(p.Clock(), fam, nodes, faulty)
	}
	return &clusterTarget{p, nodes}, nil
}

// absent are the nodes that are to join before they are ever killed: they
// are not there at the start.
func (r *stickyRun) absent() map[string]bool {
	out := make(map[string]bool)
	first := make(map[string]bool)
	// Percentages and durations can't be compared: of a node that has both, the
	// percentage counts as the earlier one.
	events := slices.Clone(r.events)
	slices.SortStableFunc(events, func(a, b nodeEvent) int { return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.at, b.at)) })
	for _, e := range events {
		if !first[e.node] {
			first[e.node], out[e.node] = true, e.join
		}
	}
	return out
}

// schedule returns what is called before each invocation and lets the events
// happen when they are due. A killed node refuses everything and leaves the
// view; who joins is reachable and in the view.
func (r *stickyRun) schedule(clock target.Clock, fam *cluster.Family, nodes []cluster.Node, faulty map[string]*cluster.Faulty) func(int64) {
	start := clock.Now()
	there := make(map[string]bool)
	for _, n := range nodes {
		there[n.Name] = true
	}
	for name, gone := range r.absent() {
		there[name] = !gone
	}
	left := append([]nodeEvent(nil), r.events...)
	var busy atomic.Bool
	var pending atomic.Int64
	pending.Store(int64(len(left)))
	return func(started int64) {
		if pending.Load() == 0 || busy.Swap(true) {
			return
		}
		defer busy.Store(false)
		keep := left[:0]
		for _, e := range left {
			if e.share && started < e.at || !e.share && clock.Now().Sub(start) < e.after {
				keep = append(keep, e)
				continue
			}
			if there[e.node] = e.join; e.join {
				faulty[e.node].Revive()
			} else {
				faulty[e.node].Kill()
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
}

// refusal names why a transaction was refused.
func refusal(err error) string {
	for _, r := range []struct {
		err  error
		name string
	}{
		{cluster.ErrStickyTargetGone, "sticky target gone"},
		{cluster.ErrUnavailableInTransaction, "unavailable in transaction"},
		{cluster.ErrUnavailable, "unavailable"},
		{cluster.ErrTransactionEnded, "transaction ended"},
		{cluster.ErrTooManyTransactions, "too many transactions"},
	} {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	var e *target.Error
	if errors.As(err, &e) && e.Status != 0 {
		return fmt.Sprintf("%s: status %d", e.Class, e.Status)
	}
	return target.ClassOf(err).String()
}
