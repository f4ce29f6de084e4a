package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/nodes"
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
	balance nodes.Options
	nodes   int // embedded ones, 0: none
	via     remote.ViaConfig
	faults  []nodes.Fault
	events  []nodes.Event
	left    func() []nodes.Event // the events that have not happened, nil: there are none
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
	if r.left != nil && !res.Interrupted {
		for _, e := range r.left() {
			res.Warnings = append(res.Warnings, fmt.Sprintf("the run was over before %s", e))
		}
	}
	if werr := out.finish(c.Context, render.Sticky(res)); werr != nil {
		return werr
	}
	return a.afterRun(err)
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
		if g := given(c, "log", "log-sample"); len(g) > 0 {
			return usagef("--%s: embedded nodes write no log, drop it", g[0])
		}
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
		f, err := nodes.ParseFault(s, names)
		if err != nil {
			return usagef("--fail %q: %w", s, err)
		}
		r.faults = append(r.faults, f)
	}
	total := int64(r.cfg.Transactions) * int64(r.cfg.Invocations)
	for _, flag := range []string{"kill", "join"} {
		for _, s := range c.StringSlice(flag) {
			e, err := nodes.ParseEvent(s, names, total)
			if err != nil {
				return usagef("--%s %q: %w", flag, s, err)
			}
			e.Join = flag == "join"
			if e.At > 0 {
				// Not between two transactions of a single worker, but within one. All
				// alike, or they would change places.
				e.At = min(e.At+int64(r.cfg.Invocations/2), total-1)
			}
			r.events = append(r.events, e)
		}
	}
	if err := nodes.CheckEvents(r.events); err != nil {
		return usagef("--kill and --join: %w", err)
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
	var list []cluster.Node
	var err error
	if r.nodes > 0 {
		if list, err = nodes.Embedded(r.opts.plane, r.nodes); err != nil {
			err = usagef("%w", err)
		}
	} else {
		list, err = r.opts.remoteNodes(r.balance.Transport)
	}
	if err != nil {
		return nil, err
	}
	faulty := nodes.WithFaults(list, r.faults, r.balance.Config.Seed)
	p, fam, err := r.balance.Cluster(list, nodes.Absent(r.events))
	if err != nil {
		return nil, usagef("%w", err)
	}
	r.cfg.Begin = func(ctx context.Context, _ int64) (context.Context, func()) {
		ctx, tx := p.Begin(ctx)
		return ctx, tx.End
	}
	if len(r.events) > 0 {
		r.cfg.Before, r.left = nodes.Schedule(r.events, p.Clock(), fam, list, faulty)
	}
	return &nodes.Owner{Target: p, Nodes: list}, nil
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
