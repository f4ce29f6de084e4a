package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/commandref"
)

func (a *app) completionCommand() *cli.Command {
	var names []string
	for _, s := range commandref.Shells() {
		names = append(names, s.Name)
	}
	return &cli.Command{
		Usage:     "print a completion script: source <(tbl completion bash)",
		ArgsUsage: strings.Join(names, "|"),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("completion: want one of %s", strings.Join(names, ", "))
			}
			i := slices.Index(names, c.Args().First())
			if i < 0 {
				return usagef("completion %q: want one of %s", c.Args().First(), strings.Join(names, ", "))
			}
			_, err := fmt.Fprint(a.stdout, commandref.Shells()[i].Script(commands(c.App)))
			return err
		},
	}
}

func (a *app) manCommand() *cli.Command {
	return &cli.Command{
		Usage: "print the manual page: tbl man | man -l -",
		Action: func(c *cli.Context) error {
			_, err := fmt.Fprint(a.stdout, commandref.Manual(program(c.App)))
			return err
		},
	}
}

// program is all that the manual says.
func program(c *cli.App) *commandref.Program {
	p := &commandref.Program{
		Usage: c.Usage, Description: c.Description, Version: release, Date: built[:min(len(built), len("2006-01-02"))], Commands: commands(c),
		Variables: []commandref.Term{
			{Name: "GITHUB_ACTIONS", Text: "When it is true, a failing run also writes an error line and a job summary for GitHub."},
		},
		Examples: []commandref.Term{
			{Name: "Prove the embedded dataplane, and see what a proof looks like:", Text: "tbl validate"},
			{Name: "Prove a real one, deleting what it holds:", Text: "tbl validate --target http://10.0.0.5 --destroy"},
			{Name: "Per-core timings of a log:", Text: "tbl stats /var/log/ltm"},
		},
	}
	for _, e := range exitCodes {
		p.ExitCodes = append(p.ExitCodes, commandref.Term{Name: strconv.Itoa(e.code), Text: e.help})
	}
	return p
}

// commands are the commands that the help shows.
func commands(c *cli.App) []commandref.Command {
	var out []commandref.Command
	for _, cmd := range c.VisibleCommands() {
		w := commandref.Command{Names: cmd.Names(), Args: strings.TrimSpace(cmd.ArgsUsage), Usage: cmd.Usage, Description: cmd.Description}
		switch {
		case w.Args == "":
		case w.Args == strings.ToLower(w.Args):
			w.Words = strings.Split(w.Args, "|")
		default: // FILE, RUN and the like
			w.Files = true
		}
		for _, f := range cmd.Flags {
			d, ok := f.(cli.DocGenerationFlag)
			if !ok {
				continue
			}
			fl := commandref.Flag{Names: f.Names(), Usage: d.GetUsage(), Value: d.TakesValue(), Files: strings.Contains(d.GetUsage(), "`FILE`")}
			if c, ok := f.(cli.CategorizableFlag); ok {
				fl.Category = c.GetCategory()
			}
			if fl.Value {
				fl.Default = strings.Trim(d.GetDefaultText(), `"`)
			}
			if ch, ok := f.(choice); ok {
				fl.Words = ch.choices()
			}
			w.Flags = append(w.Flags, fl)
		}
		out = append(out, w)
	}
	return out
}
