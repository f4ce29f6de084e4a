package app

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/metrics"
	"tbl/cmd/tbl/internal/nodes"
	"tbl/prober"
	"tbl/prober/proof"
	"tbl/target"
	"tbl/target/refplane"
	"tbl/target/remote"
	"tbl/timingstats/verdict"
)

// targetOptions are the checked target flags.
type targetOptions struct {
	a       *app
	urls    []string // none: embedded
	remote  remote.Config
	plane   refplane.Config
	log     string         // where an embedded plane's log goes
	balance *nodes.Options // how to balance several URLs, nil: not
	// capture keeps an embedded plane's log lines in memory too.
	capture bool
}

// faultHelp lists the faults for the help.
func faultHelp() string {
	var out []string
	for _, k := range refplane.FaultKinds() {
		out = append(out, k.Syntax)
	}
	return strings.Join(out, ", ")
}

// faultWords are the faults as one begins to type them: with a "=" where the
// argument can't be left out.
func faultWords() []string {
	var out []string
	for _, k := range refplane.FaultKinds() {
		word := k.Name
		if k.Default == "required" {
			word += "="
		}
		out = append(out, word)
	}
	return out
}

// targetOptions checks the target flags.
func (a *app) targetOptions(c *cli.Context) (*targetOptions, error) {
	o := &targetOptions{a: a}
	urls := c.StringSlice("target")
	if c.IsSet("host") {
		if len(urls) > 0 {
			return nil, usagef("--target and --host: want one of them")
		}
		port := c.Int("port")
		if port < 1 || port > 65535 {
			return nil, usagef("--port %d: want 1 to 65535", port)
		}
		if c.String("host") == "" {
			return nil, usagef("--host: want a host name or an address")
		}
		if _, err := netip.ParseAddr(c.String("host")); err != nil && strings.ContainsAny(c.String("host"), ":/") {
			return nil, usagef("--host %q: want a name or an address; the port goes to --port, a URL to --target", c.String("host"))
		}
		urls = []string{"http://" + net.JoinHostPort(c.String("host"), strconv.Itoa(port))}
	} else if c.IsSet("port") {
		return nil, usagef("--port needs --host")
	}
	o.urls = urls
	for _, raw := range urls {
		if err := checkURL(raw); err != nil {
			return nil, err
		}
	}
	if c.Duration("timeout") <= 0 {
		return nil, usagef("--timeout %v: want more than 0", c.Duration("timeout"))
	}
	if len(urls) == 0 {
		if g := given(c, "header", "bind", "token", "insecure", "cacert", "linger-reset", "portable", "keep-alive"); len(g) > 0 {
			return nil, usagef("--%s is for a remote dataplane: name it with --target or --host", g[0])
		}
		return o, o.embedded(c)
	}
	names := []string{"fault", "dag", "clock", "click", "handoff-delay", "max-tries"}
	if c.Command.Name != "validate" {
		names = append(names, "log", "log-sample", flagDataplaneCores)
		if !hasFlag(c.Command, flagDataplaneCores) {
			names = append(names, "cores")
		}
	}
	if g := given(c, names...); len(g) > 0 {
		return nil, usagef("--%s is for the embedded dataplane: drop it, or drop the target", g[0])
	}
	return o, o.remoteConfig(c)
}

func checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil && !strings.Contains(raw, "://") {
		return usagef("--target %q: want http://host:port or https://host:port", raw)
	}
	if err != nil {
		return usagef("--target %q: %w", raw, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return usagef("--target %q: want http://host:port or https://host:port", raw)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return usagef("--target %q: port %s, want 1 to 65535", raw, p)
		}
	}
	return nil
}

func (o *targetOptions) remoteConfig(c *cli.Context) error {
	o.remote = remote.Config{
		Timeout: c.Duration("timeout"), Token: c.String("token"), Insecure: c.Bool("insecure"), Header: http.Header{},
		LingerReset: c.Bool("linger-reset"), Portable: c.Bool("portable"), KeepAlive: c.Bool("keep-alive"),
	}
	for _, h := range c.StringSlice("header") {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" || strings.ContainsAny(h, "\r\n") {
			return usagef("--header %q: want NAME: VALUE", h)
		}
		o.remote.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	for _, b := range c.StringSlice("bind") {
		addr, err := netip.ParseAddr(b)
		if err != nil {
			return usagef("--bind %q: want an IP address", b)
		}
		// An address that is not ours would look like exhausted ports later.
		if ln, err := net.Listen("tcp", net.JoinHostPort(b, "0")); err != nil {
			return usagef("--bind %s: not an address of this machine (%w)", b, err)
		} else {
			ln.Close()
		}
		o.remote.Binds = append(o.remote.Binds, addr)
	}
	if path := c.String("cacert"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return usagef("--cacert: %w", err)
		}
		o.remote.RootCAs = x509.NewCertPool()
		if !o.remote.RootCAs.AppendCertsFromPEM(pem) {
			return usagef("--cacert %s: no certificate in it", path)
		}
	}
	return nil
}

// embedded reads the flags of the embedded dataplane.
func (o *targetOptions) embedded(c *cli.Context) error {
	cfg, err := planeConfig(c)
	if err != nil {
		return err
	}
	o.plane, o.log, o.capture = cfg, c.String("log"), c.Command.Name == "validate"
	return nil
}

// flagDataplaneCores is --cores in a command whose --cores means something else.
const flagDataplaneCores = "dataplane-cores"

// planeConfig reads the flags of a reference dataplane, embedded or served.
func planeConfig(c *cli.Context) (refplane.Config, error) {
	cores := "cores"
	if hasFlag(c.Command, flagDataplaneCores) {
		cores = flagDataplaneCores
	}
	cfg := refplane.Config{
		Cores: c.Int(cores), Seed: c.Uint64("seed"), Click: c.Duration("click"),
		HandoffDelay: c.Duration("handoff-delay"), MaxTries: c.Int("max-tries"), LogSample: c.Int("log-sample"),
	}
	switch {
	case cfg.Cores < 1 || cfg.Cores > 256:
		return cfg, usagef("--%s %d: want 1 to 256", cores, cfg.Cores)
	case cfg.Click <= 0:
		return cfg, usagef("--click %v: want more than 0", cfg.Click)
	case cfg.HandoffDelay < 0:
		return cfg, usagef("--handoff-delay %v: want 0 or more", cfg.HandoffDelay)
	case cfg.MaxTries < 0 || c.IsSet("max-tries") && cfg.MaxTries == 0:
		return cfg, usagef("--max-tries %d: want at least 1", cfg.MaxTries)
	case cfg.LogSample < 0:
		return cfg, usagef("--log-sample %d: want 0 or more", cfg.LogSample)
	case cfg.LogSample == 0:
		cfg.LogSample = -1
	}
	if c.IsSet("seed") && cfg.Seed == 0 {
		return cfg, usagef("--seed 0: want 1 or more; leave it out for a random one")
	}
	var err error
	if cfg.Clock, err = refplane.ParseClock(c.String("clock")); err != nil {
		return cfg, usagef("--clock: %w", err)
	}
	if cfg.DAG, err = refplane.ParseDAG(c.String("dag")); err != nil {
		return cfg, usagef("--dag: %w", err)
	}
	for _, s := range c.StringSlice("fault") {
		f, err := refplane.ParseFault(s)
		if err != nil {
			return cfg, usagef("--fault: %w", err)
		}
		cfg.Faults = append(cfg.Faults, f)
	}
	return cfg, nil
}

// describe names the target for the plan of a dry run and for metrics, without
// passwords.
func (o *targetOptions) describe() string {
	if len(o.urls) > 0 {
		shown := slices.Clone(o.urls)
		for i := range shown {
			if u, err := url.Parse(shown[i]); err == nil {
				shown[i] = u.Redacted()
			}
		}
		return strings.Join(shown, ", ")
	}
	return "the embedded dataplane, " + verdict.Count(o.plane.Cores, "core")
}

// plane is an open target.
type plane struct {
	target.Target
	remote   *remote.Remote  // nil when embedded, or several
	embedded *refplane.Plane // nil when remote
	captured *captured       // an embedded plane's log, where it is wanted
	nodes    *nodes.Load     // nil with one target
	watch    *metrics.Run    // counts the requests; nil: nobody asks
	close    []func() error
}

// Do performs one request.
func (p *plane) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if p.watch == nil {
		return p.Target.Do(ctx, req, ans)
	}
	return observe(ctx, p.watch, p.Target, req, ans)
}

// open opens the target. Nothing is sent.
func (o *targetOptions) open(ctx context.Context) (*plane, error) {
	p, err := o.openPlane(ctx)
	if p != nil {
		p.watch = o.a.watch
	}
	return p, err
}

func (o *targetOptions) openPlane(ctx context.Context) (*plane, error) {
	if len(o.urls) == 0 {
		return o.openEmbedded(ctx)
	}
	if len(o.urls) > 1 && o.balance == nil {
		return nil, usagef("several targets: this command takes one, or judges each apart with --each")
	}
	if len(o.urls) > 1 {
		return o.openCluster()
	}
	cfg := o.remote
	cfg.URL = o.urls[0]
	r, err := remote.New(cfg)
	if err != nil {
		return nil, usagef("--target: %w", err)
	}
	o.a.shareProcessors(&cfg)
	return &plane{Target: r, remote: r}, nil
}

func (o *targetOptions) openEmbedded(ctx context.Context) (*plane, error) {
	p := &plane{}
	var sinks []io.Writer
	w, closeLog, err := o.a.openLog(ctx, o.log)
	if err != nil {
		return nil, err
	}
	if w != nil {
		sinks = append(sinks, w)
		p.close = append(p.close, closeLog)
	}
	if o.capture {
		p.captured = new(captured)
		sinks = append(sinks, p.captured)
	}
	cfg := o.plane
	if len(sinks) > 0 {
		cfg.Log = io.MultiWriter(sinks...)
	}
	if p.embedded, err = refplane.New(cfg); err != nil {
		return nil, usagef("%w", err)
	}
	p.Target = p.embedded
	return p, nil
}

// Opened is the number of connections that a remote target opened, which the
// loader holds against its requests.
func (p *plane) Opened() int64 {
	if o, ok := p.Target.(interface{ Opened() int64 }); ok {
		return o.Opened()
	}
	return 0
}

// Ports is the number of source ports of a remote target's connections.
func (p *plane) Ports() int {
	if p.remote == nil {
		return 0
	}
	return p.remote.Ports()
}

// Close ends the target, then what its log was written to.
func (p *plane) Close() error {
	err := p.Target.Close()
	for _, c := range p.close {
		err = errors.Join(err, c())
	}
	return err
}

// warnings are what an embedded dataplane has to say about itself.
func (p *plane) warnings() []string {
	if p.embedded == nil {
		return nil
	}
	return p.embedded.Warnings()
}

// logBudget judges what an embedded dataplane logged for so many writes;
// nothing where it logged nothing.
func (p *plane) logBudget(writes int64) []verdict.Verdict {
	if p.embedded == nil {
		return nil
	}
	written, dropped := p.embedded.LogLines()
	if written+dropped == 0 {
		return nil
	}
	return []verdict.Verdict{verdict.JudgeLogBudget(written+dropped, writes)}
}

// refuseEntries protects a remote target that holds entries from a command
// that would delete them.
func (p *plane) refuseEntries(ctx context.Context, destroy bool, why string) error {
	if destroy || p.embedded != nil {
		return nil
	}
	who, err := prober.Whoami(ctx, p, prober.AskConfig{})
	if err != nil {
		return err
	}
	var held proof.NotEmptyError
	for _, c := range who.Names {
		if c.Entries > 0 {
			held.Entries = append(held.Entries, proof.CoreEntries{Core: c.Core, Subtable: c.Subtable, Entries: c.Entries})
		}
	}
	if len(held.Entries) > 0 {
		return usagef("%w; %s: give --destroy if they may go", &held, why)
	}
	return nil
}
