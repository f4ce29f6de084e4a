package app

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/urfave/cli/v2"

	"tbl/target/httpserve"
	"tbl/target/refplane"
	"tbl/timingstats/verdict"
)

func (a *app) serveCommand() *cli.Command {
	return &cli.Command{
		Usage: "offer the reference dataplane over HTTP",
		Flags: flags([]cli.Flag{
			stringFlag("", "listen", "127.0.0.1:8080", "`ADDRESS` to listen on; port 0 picks one"),
			stringsFlag("", "allow", "`CIDR` that may call (repeatable; default: everybody who can reach the address)"),
			stringFlag("", "token", "", "bearer `TOKEN` that guards everything that writes, deletes or lists keys"),
			stringFlag("", "node", "", "`NAME` of this node, sent with every answer in the header X-Tbl-Node"),
			stringFlag("", "node-cookie", "", "send the node's name in the cookie `NAME` too"),
			boolFlag("", "node-in-body", "send the node's name in the body too, as node=NAME"),
			intFlag("", "max-conns", httpserve.DefaultMaxConns, "connections at a time"),
			intFlag("", "slot", 0, "number of this blade on a chassis, 0: no chassis"),
		}, embeddedFlags()),
		Action: a.serve,
	}
}

func (a *app) serve(c *cli.Context) error {
	if err := atLeast(c, 1, "max-conns"); err != nil {
		return err
	}
	if err := atLeast(c, 0, "slot"); err != nil {
		return err
	}
	cfg, err := planeConfig(c)
	if err != nil {
		return err
	}
	cfg.Slot = c.Int("slot")
	if cfg.Clock == refplane.Model {
		return usagef("--clock model has no place behind a real socket: its time is simulated")
	}
	srv := httpserve.Config{
		Token: c.String("token"), Node: c.String("node"), NodeCookie: c.String("node-cookie"), NodeInBody: c.Bool("node-in-body"),
		MaxConns: c.Int("max-conns"),
	}
	for _, s := range c.StringSlice("allow") {
		p, err := parsePrefix(s)
		if err != nil {
			return usagef("--allow %q: want an address or a CIDR", s)
		}
		srv.Allow = append(srv.Allow, p)
	}
	ln, err := (&net.ListenConfig{}).Listen(c.Context, "tcp", c.String("listen"))
	if err != nil {
		return usagef("--listen: %w", err)
	}
	defer ln.Close()
	log, closeLog, err := a.openLog(c.Context, c.String("log"))
	if err != nil {
		return err
	}
	cfg.Log = log
	plane, err := refplane.New(cfg)
	if err != nil {
		return usagef("%w", err)
	}
	for _, w := range plane.Warnings() {
		fmt.Fprintf(a.env.Stderr, "tbl: warning: %s\n", w)
	}
	cfg = plane.Config()
	fmt.Fprintf(a.env.Stderr, "tbl: %s on http://%s, seed %d; status page at /, metrics at /metrics; Ctrl-C ends it\n", verdict.Count(cfg.Cores, "core"), ln.Addr(), cfg.Seed)
	var server *httpserve.Server
	srv.Extra = statusPages(c.Context, plane, srv.Node, func() httpserve.Counts { return server.Counts() })
	server = httpserve.New(plane, srv)
	err = server.Serve(c.Context, ln)
	err = errors.Join(err, plane.Close())
	if closeLog != nil {
		err = errors.Join(err, closeLog())
	}
	if err != nil {
		return incompletef("serve: %w", err)
	}
	// Ended by a signal, which is how a server ends.
	return nil
}

// parsePrefix reads a CIDR, or an address as the prefix of its whole length.
func parsePrefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}
