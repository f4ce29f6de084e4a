// Package app is the command tree: it turns flags into configurations, calls
// the measuring packages, and hands their results to render.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/metrics"
)

// Env is the world that a run sees.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv reads variables that are not flags: GITHUB_ACTIONS, NO_COLOR, ….
	Getenv func(string) string
	// HalveProcessors makes the process use half as many processors at once,
	// however often it is called; nil: a run leaves that alone.
	HalveProcessors func()
	// CollectLater lets the process's garbage lie for longer, within a limit of
	// memory, from here on; nil: a run leaves that alone.
	CollectLater func()
}

// System is the process's own world.
func System() Env {
	return Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		HalveProcessors: halveProcessors(os.Getenv), CollectLater: collectLater(os.Getenv),
	}
}

// app is one run of the program.
type app struct {
	env    Env
	args   []string // the command line as given
	stdout *pipe
	cancel context.CancelFunc
	code   int          // of a command that ended without an error
	watch  *metrics.Run // what --metrics tells; nil: nobody asks
}

// Run runs one command line, without the program's name, and returns the
// exit code. It ends no process and can be called again and again, but
// not twice at once: the command-line library keeps state of its own.
func Run(ctx context.Context, env Env, args []string) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &app{env: env, args: args, cancel: cancel}
	a.stdout = &pipe{w: env.Stdout, gone: cancel}
	err := a.run(ctx, args)
	switch code := exitCode(err); {
	case a.stdout.closed.Load():
		// The reader has what it wanted.
		return 0
	case err != nil:
		fmt.Fprintf(env.Stderr, "tbl: %s\n", oneLine(err))
		return code
	}
	return a.code
}

func (a *app) run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		args = []string{"version"}
	}
	c := a.tree(a.needed(args))
	if len(args) > 0 {
		if cmd := c.Command(args[0]); cmd != nil {
			args = append([]string{args[0]}, flagsFirst(cmd.Flags, args[1:])...)
		}
	}
	return c.RunContext(ctx, append([]string{"tbl"}, args...))
}

// entry is a command in the table of them.
type entry struct {
	names []string // the first one leads, the others are aliases
	build func() *cli.Command
	whole bool // it works on the whole tree
}

// entries is the table of commands, in the order of the help.
func (a *app) entries() []entry {
	one := func(name string, build func() *cli.Command) entry { return entry{names: []string{name}, build: build} }
	return []entry{
		one("validate", a.validateCommand), one("serve", a.serveCommand), one("info", a.infoCommand),
		one("whoami", a.whoamiCommand), one("dump", a.dumpCommand), one("reset", a.resetCommand),
		one("load", a.loadCommand), one("bulk-post", a.bulkPostCommand), one("probe", a.probeCommand),
		{names: []string{"stats", "timing-stats"}, build: a.statsCommand},
		one("sticky", a.stickyCommand), one("find-names", a.findNamesCommand), one("meta", a.metaCommand),
		one("session", a.sessionCommand), one("compare", a.compareCommand), one("merge", a.mergeCommand),
		one("report", a.reportCommand), one("irule", a.iruleCommand), one("lint", a.lintCommand),
		{names: []string{"completion"}, build: a.completionCommand, whole: true},
		{names: []string{"man"}, build: a.manCommand, whole: true},
		one("version", a.versionCommand),
	}
}

// needed are the commands that a command line needs: the one that it names,
// else all of them. Building a command costs the library more than reading a
// short log does.
func (a *app) needed(args []string) []entry {
	all := a.entries()
	if len(args) > 0 {
		for _, e := range all {
			if slices.Contains(e.names, args[0]) && !e.whole {
				return []entry{e}
			}
		}
	}
	return all
}

// cli builds the tree of all commands.
func (a *app) cli() *cli.App { return a.tree(a.entries()) }

// tree builds a tree of some commands.
func (a *app) tree(entries []entry) *cli.App {
	c := &cli.App{
		Name:                      "tbl",
		Usage:                     "does the work land where its state lives?",
		Description:               "Loads a dataplane whose state is sharded over cores, proves per core and per transaction\nwhether requests meet their state, and ends with a verdict to gate on.\nWithout a target, commands run on an embedded reference dataplane.",
		Version:                   version(),
		HideVersion:               true,
		Writer:                    a.stdout,
		ErrWriter:                 a.env.Stderr,
		Metadata:                  map[string]any{metaArgs: a.args},
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		// The default handler ends the process.
		ExitErrHandler: func(*cli.Context, error) {},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unknown command %q: `tbl --help` lists the commands", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, e := range entries {
		cmd := e.build()
		cmd.Name, cmd.Aliases = e.names[0], e.names[1:]
		finish(cmd)
		c.Commands = append(c.Commands, cmd)
	}
	c.OnUsageError = onUsageError
	return c
}

// finish gives a command what every command has. The library inherits none
// of it.
func finish(cmd *cli.Command) {
	cmd.OnUsageError = onUsageError
	cmd.HideHelpCommand = true
	action := cmd.Action
	takesArgs := cmd.ArgsUsage != ""
	if !takesArgs {
		cmd.ArgsUsage = " "
	}
	cmd.Action = func(c *cli.Context) error {
		if c.Args().Present() && !takesArgs {
			return usagef("%s takes no arguments, got %q", cmd.Name, c.Args().First())
		}
		if e := c.Float64("max-errors"); !(e >= 0 && e <= 100) {
			return usagef("--max-errors %v: want a percentage from 0 to 100", e)
		}
		return action(c)
	}
	for _, sub := range cmd.Subcommands {
		finish(sub)
	}
}

// onUsageError keeps the library from printing the whole help to stdout.
func onUsageError(_ *cli.Context, err error, _ bool) error {
	msg := err.Error()
	if name, ok := strings.CutPrefix(msg, "flag provided but not defined: -"); ok {
		return usagef("unknown flag --%s", strings.TrimLeft(name, "-"))
	}
	if name, ok := strings.CutPrefix(msg, "flag needs an argument: -"); ok {
		return usagef("flag --%s needs a value", strings.TrimLeft(name, "-"))
	}
	msg = strings.TrimSuffix(strings.Replace(msg, " for -", " for flag -", 1), ": parse error")
	// What the library found in the environment it names itself; how Go's
	// parser of numbers puts it helps nobody.
	msg, _, _ = strings.Cut(msg, ": strconv.")
	if head, name, ok := strings.Cut(msg, " for flag "); ok {
		msg = head + " for flag --" + strings.TrimLeft(name, "-")
	}
	return usagef("%s", msg)
}

// flagsFirst moves flags that stand behind arguments to the front: the
// library would take them for arguments. A "--" ends the flags. Where help is
// asked for, nothing else is left: the library would look for a topic.
func flagsFirst(flags []cli.Flag, args []string) []string {
	takesValue := func(arg string) bool {
		name := strings.TrimLeft(arg, "-")
		for _, f := range flags {
			if slices.Contains(f.Names(), name) {
				d, ok := f.(cli.DocGenerationFlag)
				return ok && d.TakesValue()
			}
		}
		return false
	}
	var front, rest []string
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			rest = append(rest, args[i+1:]...)
			i = len(args)
		case arg == "--help" || arg == "-h":
			return []string{"--help"}
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			rest = append(rest, arg)
		default:
			front = append(front, arg)
			if takesValue(arg) && i+1 < len(args) {
				i++
				front = append(front, args[i])
			}
		}
	}
	if len(rest) == 0 {
		return front
	}
	return append(append(front, "--"), rest...)
}

// pipe is stdout: it notices that its reader has gone.
type pipe struct {
	w      io.Writer
	gone   func()
	closed atomic.Bool
}

func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		p.closed.Store(true)
		p.gone()
	}
	return n, err
}
