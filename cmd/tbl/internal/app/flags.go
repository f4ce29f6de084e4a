package app

import (
	"errors"
	"flag"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tbl/target/refplane"
)

// Categories of flags in the help.
const (
	catTarget   = "Target"
	catNodes    = "Several nodes"
	catEmbedded = "Embedded dataplane"
	catOutput   = "Output and gating"
)

// Every flag also reads TBL_<NAME>.
func env(name string) []string {
	return []string{"TBL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))}
}

func stringFlag(cat, name, def, usage string) cli.Flag {
	return &cli.StringFlag{Category: cat, Name: name, Value: def, Usage: usage, EnvVars: env(name)}
}

func stringsFlag(cat, name, usage string) cli.Flag {
	return &cli.StringSliceFlag{Category: cat, Name: name, Usage: usage, EnvVars: env(name)}
}

// choice is a flag whose values are words of a list, or begin with one that
// ends in "=", ":" or "@". Completion offers them.
type choice interface{ choices() []string }

type (
	choiceFlag struct {
		*cli.StringFlag
		words []string
	}
	choicesFlag struct {
		*cli.StringSliceFlag
		words []string
	}
)

func (f choiceFlag) choices() []string  { return f.words }
func (f choicesFlag) choices() []string { return f.words }

// among says which words a flag takes. The check of the value stays with who
// reads it.
func among(f cli.Flag, words ...string) cli.Flag {
	switch f := f.(type) {
	case *cli.StringFlag:
		return choiceFlag{f, words}
	case *cli.StringSliceFlag:
		return choicesFlag{f, words}
	}
	return f
}

func intFlag(cat, name string, def int, usage string) cli.Flag {
	return intDecimal{&cli.IntFlag{Category: cat, Name: name, Value: def, Usage: usage, EnvVars: env(name), Base: 10}}
}

func uint64Flag(cat, name, usage string) cli.Flag {
	return uintDecimal{&cli.Uint64Flag{Category: cat, Name: name, Usage: usage, EnvVars: env(name), Base: 10, DefaultText: "random"}}
}

// intDecimal and uintDecimal read decimal numbers only: the library's own
// flags take 08 for a broken octal number and 010 for 8.
type (
	intDecimal  struct{ *cli.IntFlag }
	uintDecimal struct{ *cli.Uint64Flag }
)

// GetDefaultText is empty where the usage tells the default in words.
func (f intDecimal) GetDefaultText() string {
	if strings.Contains(f.Usage, "(default:") {
		return ""
	}
	return f.IntFlag.GetDefaultText()
}

// Apply lets the library read the environment, and the command line by us.
func (f intDecimal) Apply(set *flag.FlagSet) error {
	if err := f.IntFlag.Apply(flag.NewFlagSet("", flag.ContinueOnError)); err != nil {
		return err
	}
	set.Var((*decimalInt)(&f.Value), f.Name, f.Usage)
	return nil
}

// Apply is intDecimal's.
func (f uintDecimal) Apply(set *flag.FlagSet) error {
	if err := f.Uint64Flag.Apply(flag.NewFlagSet("", flag.ContinueOnError)); err != nil {
		return err
	}
	set.Var((*decimalUint)(&f.Value), f.Name, f.Usage)
	return nil
}

type (
	decimalInt  int
	decimalUint uint64
)

func (d *decimalInt) String() string { return strconv.Itoa(int(*d)) }

// Get is asked for by cli.Context.Value.
func (d *decimalInt) Get() any { return int(*d) }

func (d *decimalInt) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("want a whole decimal number")
	}
	*d = decimalInt(n)
	return nil
}

func (d *decimalUint) String() string { return strconv.FormatUint(uint64(*d), 10) }

// Get is decimalInt's.
func (d *decimalUint) Get() any { return uint64(*d) }

func (d *decimalUint) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return errors.New("want a whole decimal number from 0")
	}
	*d = decimalUint(n)
	return nil
}

func floatFlag(cat, name string, def float64, usage string) cli.Flag {
	return &cli.Float64Flag{Category: cat, Name: name, Value: def, Usage: usage, EnvVars: env(name)}
}

func boolFlag(cat, name, usage string) cli.Flag {
	return &cli.BoolFlag{Category: cat, Name: name, Usage: usage, EnvVars: env(name)}
}

func durationFlag(cat, name string, def time.Duration, usage string) cli.Flag {
	return &cli.DurationFlag{Category: cat, Name: name, Value: def, Usage: usage, EnvVars: env(name)}
}

// ownEnv gives a flag that means something else in this command a variable of
// its own, TBL_<COMMAND>_<NAME>: what is set for the others must not reach it.
func ownEnv(command string, f cli.Flag) cli.Flag {
	vars := env(command + "-" + f.Names()[0])
	switch f := f.(type) {
	case *cli.StringFlag:
		f.EnvVars = vars
	case intDecimal:
		f.EnvVars = vars
	}
	return f
}

// flags joins groups of flags. A later group does not repeat an earlier
// group's name: the first one wins, so that a command can give a shared flag
// its own meaning or default.
func flags(groups ...[]cli.Flag) []cli.Flag {
	var out []cli.Flag
	seen := map[string]bool{}
	for _, g := range groups {
		for _, f := range g {
			if name := f.Names()[0]; !seen[name] {
				seen[name] = true
				out = append(out, f)
			}
		}
	}
	return out
}

// targetFlags are the flags of every command that needs a dataplane.
func targetFlags() []cli.Flag {
	return []cli.Flag{
		stringsFlag(catTarget, "target", "base `URL` of a dataplane; repeat for several nodes (default: the embedded dataplane)"),
		stringFlag(catTarget, "host", "", "`HOST` of a dataplane, short for --target http://HOST:PORT"),
		intFlag(catTarget, "port", 80, "`PORT` for --host"),
		boolFlag(catTarget, "insecure", "https: don't verify the certificate"),
		stringFlag(catTarget, "cacert", "", "https: `FILE` with the certificates to trust"),
		stringsFlag(catTarget, "header", "additional header `NAME: VALUE` (repeatable)"),
		durationFlag(catTarget, "timeout", 5*time.Second, "limit for one request"),
		stringsFlag(catTarget, "bind", "source `ADDRESS` of connections (repeatable: each has its own ports)"),
		boolFlag(catTarget, "linger-reset", "end connections with a reset: no TIME_WAIT on either side, but a server that still reads sees an error"),
		boolFlag(catTarget, "portable", "use the portable network code where there is a faster one"),
		stringFlag(catTarget, "token", "", "bearer `TOKEN`, where the dataplane asks for one"),
		boolFlag(catTarget, "each", "several targets: judge each apart"),
		boolFlag(catTarget, "read-only", "refuse everything that writes or deletes"),
	}
}

// embeddedFlags configure the embedded dataplane.
func embeddedFlags() []cli.Flag {
	return []cli.Flag{
		intFlag(catEmbedded, "cores", 4, "number of cores, 1 to 256"),
		uint64Flag(catEmbedded, "seed", "seed of ownership, connections and faults"),
		among(stringFlag(catEmbedded, "clock", "wall", "wall (real threads) or model (seeded simulation)"), refplane.ClockNames()...),
		among(stringFlag(catEmbedded, "dag", "tuple", "what of a connection picks the core: tuple, ports or src-ip"), refplane.DAGNames()...),
		among(stringsFlag(catEmbedded, "fault", "a mistake to make (repeatable): "+faultHelp()), faultWords()...),
		durationFlag(catEmbedded, "click", 10*time.Nanosecond, "length of a click"),
		durationFlag(catEmbedded, "handoff-delay", 0, "added to each operation on another core's subtable"),
		intFlag(catEmbedded, "max-tries", 0, "names tried in discovery, 0: max(200, 25 per core)"),
		stringFlag(catEmbedded, "log", "", "append sampled timings to `FILE`, - for stdout"),
		intFlag(catEmbedded, "log-sample", 1000, "log 1 in `N` writes per core, 0: none"),
	}
}

// outputFlags are the flags of every command that prints a result.
func outputFlags() []cli.Flag {
	return []cli.Flag{
		among(stringFlag(catOutput, "format", "text", "what goes to stdout: "+strings.Join(stdoutFormats(), ", ")), stdoutFormats()...),
		stringsFlag(catOutput, "export", "also write to `FILE`, the form told by its ending: "+strings.Join(exportEndings(), " ")+" (repeatable)"),
		boolFlag(catOutput, "quiet", "no progress, and of the text only the verdict lines"),
		boolFlag(catOutput, "v", "say more on stderr"),
	}
}

// plotFlags are the flags of commands that have something to draw.
func plotFlags() []cli.Flag {
	return []cli.Flag{
		boolFlag(catOutput, "plot", "draw the distributions too, on a logarithmic scale as wide as the terminal"),
		boolFlag(catOutput, "ascii", "with --plot: plain ASCII"),
	}
}

// gateFlags are the flags of every command that ends in verdicts.
func gateFlags() []cli.Flag {
	return []cli.Flag{
		boolFlag(catOutput, "strict", "let warnings fail"),
		floatFlag(catOutput, "max-errors", 1, "`PERCENT` of requests that may fail"),
		stringsFlag(catOutput, "assert", "`EXPR` such as 'p99<50' that must hold, or the run fails (repeatable)"),
		stringsFlag(catOutput, "warn", "`EXPR` that warns when it doesn't hold (repeatable)"),
	}
}

// given lists which of the names stand on the command line. What the
// environment sets for all commands is no contradiction to what one is told.
func given(c *cli.Context, names ...string) []string {
	args, _ := c.App.Metadata[metaArgs].([]string)
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return !slices.ContainsFunc(args, func(a string) bool {
			name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
			return name == n && strings.HasPrefix(a, "-")
		})
	})
}

// metaArgs is where the command line stands in the library's metadata.
const metaArgs = "args"

// oneOf checks a word against its enumeration.
func oneOf(flag, got string, want ...string) error {
	if slices.Contains(want, got) {
		return nil
	}
	return usagef("--%s %q: want one of %s", flag, got, strings.Join(want, ", "))
}

// atLeast checks a number's lower bound.
func atLeast(c *cli.Context, low int, names ...string) error {
	for _, n := range names {
		if v := c.Int(n); v < low {
			return usagef("--%s %d: want at least %d", n, v, low)
		}
	}
	return nil
}
