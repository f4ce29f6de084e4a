package app

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tbl/irule"
)

// iruleForms are what `tbl irule` prints.
var iruleForms = []struct {
	name, usage string
	render      func(irule.Options) (string, error)
}{
	{"localdb", "the library that finds each TMM's own subtable", irule.Localdb},
	{"harness", "the rule that serves the endpoints", irule.Harness},
	{"tmsh", "both, as input of `tmsh load sys config merge from-terminal`", irule.TMSH},
}

func iruleNames() (names []string) {
	for _, f := range iruleForms {
		names = append(names, f.name)
	}
	return names
}

func (a *app) iruleCommand() *cli.Command {
	var about strings.Builder
	for _, f := range iruleForms {
		fmt.Fprintf(&about, "%-8s %s\n", f.name, f.usage)
	}
	return &cli.Command{
		Usage:       "print the two iRules for a BIG-IP, or the tmsh input that loads them",
		ArgsUsage:   strings.Join(iruleNames(), "|"),
		Description: strings.TrimSuffix(about.String(), "\n"),
		Flags: []cli.Flag{
			intFlag("", "sample", irule.DefaultSample, "log 1 in `N` writes per TMM, 0: none"),
			intFlag("", "threshold", irule.DefaultThreshold, "clicks from which a write is remote"),
			intFlag("", "max-tries", 0, "names tried in discovery, 0: max(200, 25 per TMM)"),
			intFlag("", "candidates", irule.DefaultCandidates, "how many names to draw from; 1 with --max-tries 1 gives fixed names, to see what they cost"),
			stringFlag("", "secret", "", "bearer `SECRET` for everything that writes, deletes or lists; tbl sends it with --token"),
			stringsFlag("", "allow", "source `CIDR` for the same (repeatable; default, without a secret: private and loopback addresses)"),
			intFlag("", "max-body", irule.DefaultMaxBody, "largest body of /bulk_load in bytes"),
			durationFlag("", "body-timeout", irule.DefaultBodyTimeoutMS*time.Millisecond, "how long a body may take to arrive"),
			stringFlag("", "virtual", "", "tmsh: `NAME` of the virtual server to attach to (default "+irule.DefaultVirtual+")"),
			stringFlag("", "destination", "", "tmsh: define that virtual server at `ADDRESS:PORT`, instead of attaching to one that exists"),
		},
		Action: a.irule,
	}
}

func (a *app) irule(c *cli.Context) error {
	if c.NArg() != 1 {
		return usagef("irule: want one of %s", strings.Join(iruleNames(), ", "))
	}
	form := -1
	for i, f := range iruleForms {
		if f.name == c.Args().First() {
			form = i
		}
	}
	if form < 0 {
		return usagef("irule %q: want one of %s", c.Args().First(), strings.Join(iruleNames(), ", "))
	}
	name := iruleForms[form].name
	if name != "tmsh" {
		if extra := given(c, "virtual", "destination"); len(extra) > 0 {
			return usagef("--%s goes with tmsh only", extra[0])
		}
	}
	o, err := iruleOptions(c)
	if err != nil {
		return err
	}
	text, err := iruleForms[form].render(o)
	if err != nil {
		return usagef("--%w", err)
	}
	if name != "localdb" && o.Secret == "" && len(o.Allow) == 0 {
		fmt.Fprintln(a.env.Stderr, "tbl: without --secret or --allow the harness serves private and loopback addresses only")
	}
	_, err = fmt.Fprint(a.stdout, text)
	return err
}

func iruleOptions(c *cli.Context) (o irule.Options, err error) {
	if err := atLeast(c, 1, "threshold", "candidates", "max-body"); err != nil {
		return o, err
	}
	o = irule.Options{
		Sample: c.Int("sample"), Threshold: c.Int("threshold"), MaxTries: c.Int("max-tries"), Candidates: c.Int("candidates"),
		Secret: c.String("secret"), MaxBody: c.Int("max-body"), Virtual: c.String("virtual"),
	}
	timeout := c.Duration("body-timeout")
	if timeout < time.Millisecond {
		return o, usagef("--body-timeout %v: want at least 1ms", timeout)
	}
	o.BodyTimeoutMS = int(min(timeout.Milliseconds(), 1<<31-1))
	for _, s := range c.StringSlice("allow") {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			addr, err := netip.ParseAddr(s)
			if err != nil {
				return o, usagef("--allow %q: want an address or a range such as 10.0.0.0/8", s)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		o.Allow = append(o.Allow, p)
	}
	if s := c.String("destination"); s != "" {
		if o.Destination, err = netip.ParseAddrPort(s); err != nil {
			return o, usagef("--destination %q: want an address and a port such as 192.0.2.10:80", s)
		}
	}
	return o, nil
}
