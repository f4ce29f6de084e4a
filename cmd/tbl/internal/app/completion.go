package app

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

func (a *app) completionCommand() *cli.Command {
	shells := map[string]func(*cli.App) (string, error){"bash": bashCompletion, "zsh": zshCompletion, "fish": (*cli.App).ToFishCompletion}
	names := []string{"bash", "zsh", "fish"}
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script: source <(tbl completion bash)",
		ArgsUsage: strings.Join(names, "|"),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("completion: want one of %s", strings.Join(names, ", "))
			}
			make, ok := shells[c.Args().First()]
			if !ok {
				return usagef("completion %q: want one of %s", c.Args().First(), strings.Join(names, ", "))
			}
			script, err := make(c.App)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.stdout, script)
			return err
		},
	}
}

// commandWords calls each for every visible command and its flags.
func commandWords(c *cli.App, each func(cmd *cli.Command, flags []string)) {
	for _, cmd := range c.VisibleCommands() {
		var flags []string
		for _, f := range cmd.Flags {
			for _, n := range f.Names() {
				if len(n) > 1 {
					flags = append(flags, "--"+n)
				} else {
					flags = append(flags, "-"+n)
				}
			}
		}
		each(cmd, flags)
	}
}

func bashCompletion(c *cli.App) (string, error) {
	var names, cases strings.Builder
	commandWords(c, func(cmd *cli.Command, flags []string) {
		fmt.Fprintf(&names, " %s", strings.Join(cmd.Names(), " "))
		fmt.Fprintf(&cases, "    %s) words='%s' ;;\n", strings.Join(cmd.Names(), "|"), strings.Join(flags, " "))
	})
	return `# bash completion for tbl
_tbl() {
  local cur=${COMP_WORDS[COMP_CWORD]} words
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '` + strings.TrimSpace(names.String()) + `' -- "$cur"))
    return
  fi
  case ${COMP_WORDS[1]} in
` + cases.String() + `  esac
  case $cur in
    -*) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -f -- "$cur")) ;;
  esac
}
complete -o filenames -F _tbl tbl
`, nil
}

func zshCompletion(c *cli.App) (string, error) {
	var names, cases strings.Builder
	quote := strings.NewReplacer("'", `'\''`, ":", `\:`)
	commandWords(c, func(cmd *cli.Command, flags []string) {
		fmt.Fprintf(&names, "    '%s:%s'\n", cmd.Name, quote.Replace(cmd.Usage))
		fmt.Fprintf(&cases, "    %s) compadd -- %s ;;\n", strings.Join(cmd.Names(), "|"), strings.Join(flags, " "))
	})
	return `#compdef tbl
_tbl() {
  local -a commands
  commands=(
` + names.String() + `  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  if [[ $words[CURRENT] != -* ]]; then
    _files
    return
  fi
  case $words[2] in
` + cases.String() + `  esac
}
if [ "$funcstack[1]" = _tbl ]; then _tbl "$@"; else compdef _tbl tbl; fi
`, nil
}
