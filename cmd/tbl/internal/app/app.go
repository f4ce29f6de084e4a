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
}

// System is the process's own world.
func System() Env {
	return Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, HalveProcessors: halveProcessors(os.Getenv)}
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
	c := a.cli()
	switch {
	case len(args) > 0 && args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		args = []string{"version"}
	}
	if len(args) > 0 {
		if cmd := c.Command(args[0]); cmd != nil {
			args = append([]string{args[0]}, flagsFirst(cmd.Flags, args[1:])...)
		}
	}
	return c.RunContext(ctx, append([]string{"tbl"}, args...))
}

// cli builds the command tree.
func (a *app) cli() *cli.App {
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
		Commands: []*cli.Command{
			a.validateCommand(), a.serveCommand(), a.infoCommand(), a.whoamiCommand(), a.dumpCommand(),
			a.resetCommand(), a.loadCommand(), a.bulkPostCommand(), a.probeCommand(), a.statsCommand(), a.stickyCommand(),
			a.findNamesCommand(), a.metaCommand(), a.sessionCommand(), a.compareCommand(), a.mergeCommand(), a.reportCommand(),
			a.iruleCommand(), a.lintCommand(),
			a.completionCommand(), a.manCommand(), a.versionCommand(),
		},
	}
	c.OnUsageError = onUsageError
	for _, cmd := range c.Commands {
		finish(cmd)
	}
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
	return usagef("%s", strings.Replace(msg, "for flag -", "for flag --", 1))
}

// flagsFirst moves flags that stand behind arguments to the front: the
// library would take them for arguments. A "--" ends the flags.
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
