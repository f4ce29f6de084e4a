package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// shell is a shell that completion knows.
type shell struct {
	name  string
	write func([]commandWords) string
}

// shells is the table of them.
func shells() []shell {
	return []shell{{"bash", bashCompletion}, {"zsh", zshCompletion}, {"fish", fishCompletion}, {"powershell", powershellCompletion}}
}

func (a *app) completionCommand() *cli.Command {
	var names []string
	for _, s := range shells() {
		names = append(names, s.name)
	}
	return &cli.Command{
		Name:      "completion",
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
			_, err := fmt.Fprint(a.stdout, shells()[i].write(words(c.App)))
			return err
		},
	}
}

// commandWords are the words that can stand behind a command.
type commandWords struct {
	names []string // the command's own, the first one leads
	usage string
	flags []flagWords
	args  []string // its arguments, where they are words of a list
	files bool     // its arguments are files
}

// flagWords are a flag and what can stand behind it.
type flagWords struct {
	names  []string // with their dashes
	usage  string
	value  bool     // a value follows
	values []string // words that it may be or begin with
	files  bool     // it is a file
}

// words lists the commands that the help shows.
func words(c *cli.App) []commandWords {
	var out []commandWords
	for _, cmd := range c.VisibleCommands() {
		w := commandWords{names: cmd.Names(), usage: cmd.Usage}
		switch args := strings.TrimSpace(cmd.ArgsUsage); {
		case args == "":
		case args == strings.ToLower(args):
			w.args = strings.Split(args, "|")
		default: // FILE, RUN and the like
			w.files = true
		}
		for _, f := range cmd.Flags {
			d, ok := f.(cli.DocGenerationFlag)
			if !ok {
				continue
			}
			fw := flagWords{usage: strings.ReplaceAll(d.GetUsage(), "`", ""), value: d.TakesValue(), files: strings.Contains(d.GetUsage(), "`FILE`")}
			for _, n := range f.Names() {
				fw.names = append(fw.names, dashed(n))
			}
			if ch, ok := f.(choice); ok {
				fw.values = ch.choices()
			}
			w.flags = append(w.flags, fw)
		}
		out = append(out, w)
	}
	return out
}

// dashed is a flag as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// typed are all flags of a command as they are typed.
func (w *commandWords) typed() (out []string) {
	for _, f := range w.flags {
		out = append(out, f.names...)
	}
	return out
}

// valueCases calls each for the flags of a command that take a value: those
// that are files together, those without a hint together, and each list of
// words.
func (w *commandWords) valueCases(each func(names, values []string, files bool)) {
	var files, free []string
	for _, f := range w.flags {
		switch {
		case !f.value:
		case len(f.values) > 0:
			each(f.names, f.values, false)
		case f.files:
			files = append(files, f.names...)
		default:
			free = append(free, f.names...)
		}
	}
	if len(files) > 0 {
		each(files, nil, true)
	}
	if len(free) > 0 {
		each(free, nil, false)
	}
}

func bashCompletion(cmds []commandWords) string {
	var names []string
	var cases strings.Builder
	for i := range cmds {
		w := &cmds[i]
		names = append(names, w.names...)
		fmt.Fprintf(&cases, "    %s)\n      flags='%s'\n", strings.Join(w.names, "|"), strings.Join(w.typed(), " "))
		if len(w.args) > 0 {
			fmt.Fprintf(&cases, "      words='%s'\n", strings.Join(w.args, " "))
		}
		fmt.Fprintf(&cases, "      files=%s\n      case $flag in\n", map[bool]string{true: "1", false: "''"}[w.files])
		w.valueCases(func(names, values []string, files bool) {
			action := "return"
			switch {
			case len(values) > 0:
				action = "words='" + strings.Join(values, " ") + "'; files=''; flags=''"
			case files:
				action = "words=''; files=1; flags=''"
			}
			fmt.Fprintf(&cases, "        %s) %s ;;\n", strings.Join(names, "|"), action)
		})
		cases.WriteString("      esac ;;\n")
	}
	return `# bash completion for tbl
_tbl() {
  local cur=${COMP_WORDS[COMP_CWORD]} flag='' flags='' words='' files=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '` + strings.Join(names, " ") + `' -- "$cur"))
    return
  fi
  # What stands before the word; bash makes three words of --flag=value.
  flag=${COMP_WORDS[COMP_CWORD-1]}
  if [ "$cur" = = ]; then
    cur=''
  elif [ "$flag" = = ]; then
    flag=${COMP_WORDS[COMP_CWORD-2]}
  fi
  case ${COMP_WORDS[1]} in
` + cases.String() + `  esac
  if [[ $cur == -* && -n $flags ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  elif [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    case ${COMPREPLY[0]} in *[=:@]) compopt -o nospace 2>/dev/null ;; esac
  elif [ -n "$files" ]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}
complete -F _tbl tbl
`
}

func zshCompletion(cmds []commandWords) string {
	var names, cases strings.Builder
	// In a list of _describe a colon ends the word.
	quote := strings.NewReplacer("'", `'\''`, ":", `\:`)
	for i := range cmds {
		w := &cmds[i]
		for _, n := range w.names {
			fmt.Fprintf(&names, "    '%s:%s'\n", n, quote.Replace(w.usage))
		}
		fmt.Fprintf(&cases, "    %s)\n      flags=(%s)\n", strings.Join(w.names, "|"), strings.Join(w.typed(), " "))
		if len(w.args) > 0 {
			fmt.Fprintf(&cases, "      values=(%s)\n", strings.Join(w.args, " "))
		}
		fmt.Fprintf(&cases, "      files=%s\n      case $flag in\n", map[bool]string{true: "1", false: "''"}[w.files])
		w.valueCases(func(names, values []string, files bool) {
			action := "return"
			switch {
			case len(values) > 0:
				action = "values=('" + strings.Join(values, "' '") + "'); files=''; flags=()"
			case files:
				action = "values=(); files=1; flags=()"
			}
			fmt.Fprintf(&cases, "        %s) %s ;;\n", strings.Join(names, "|"), action)
		})
		cases.WriteString("      esac ;;\n")
	}
	return `#compdef tbl
_tbl() {
  local -a commands flags values
  local flag files
  commands=(
` + names.String() + `  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  flag=$words[CURRENT-1]
  if [[ $words[CURRENT] == --*=* ]]; then
    flag=${words[CURRENT]%%=*}
    compset -P '*='
  fi
  case $words[2] in
` + cases.String() + `  esac
  if [[ $PREFIX == -* ]] && (( $#flags )); then
    compadd -- $flags
  elif (( $#values )); then
    compadd -S '' -- ${(M)values:#*[=:@]}
    compadd -- ${values:#*[=:@]}
  elif [[ -n $files ]]; then
    _files
  fi
}
if [ "$funcstack[1]" = _tbl ]; then _tbl "$@"; else compdef _tbl tbl; fi
`
}

func fishCompletion(cmds []commandWords) string {
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" }
	var b strings.Builder
	b.WriteString("# fish completion for tbl\ncomplete -c tbl -f\n")
	for i := range cmds {
		w := &cmds[i]
		for _, n := range w.names {
			fmt.Fprintf(&b, "complete -c tbl -n __fish_use_subcommand -a %s -d %s\n", n, quote(w.usage))
		}
		seen := quote("__fish_seen_subcommand_from " + strings.Join(w.names, " "))
		if w.files {
			fmt.Fprintf(&b, "complete -c tbl -n %s -F\n", seen)
		}
		if len(w.args) > 0 {
			fmt.Fprintf(&b, "complete -c tbl -n %s -a %s\n", seen, quote(strings.Join(w.args, " ")))
		}
		for _, f := range w.flags {
			fmt.Fprintf(&b, "complete -c tbl -n %s", seen)
			for _, n := range f.names {
				if long, ok := strings.CutPrefix(n, "--"); ok {
					fmt.Fprintf(&b, " -l %s", long)
				} else {
					fmt.Fprintf(&b, " -s %s", n[1:])
				}
			}
			switch {
			case len(f.values) > 0:
				fmt.Fprintf(&b, " -x -a %s", quote(strings.Join(f.values, " ")))
			case f.files:
				b.WriteString(" -r -F")
			case f.value:
				b.WriteString(" -x")
			}
			fmt.Fprintf(&b, " -d %s\n", quote(f.usage))
		}
	}
	return b.String()
}

func powershellCompletion(cmds []commandWords) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	list := func(words []string) string {
		out := make([]string, len(words))
		for i, w := range words {
			out[i] = quote(w)
		}
		return "@(" + strings.Join(out, ", ") + ")"
	}
	var names, flags, values strings.Builder
	for i := range cmds {
		w := &cmds[i]
		for _, n := range w.names {
			fmt.Fprintf(&names, "    %s = %s\n", quote(n), quote(w.usage))
			fmt.Fprintf(&flags, "    %s = %s\n", quote(n), list(w.typed()))
			if len(w.args) > 0 {
				fmt.Fprintf(&values, "    %s = %s\n", quote(n), list(w.args))
			}
			for _, f := range w.flags {
				for _, name := range f.names {
					if len(f.values) > 0 {
						fmt.Fprintf(&values, "    %s = %s\n", quote(n+" "+name), list(f.values))
					}
				}
			}
		}
	}
	return `# PowerShell completion for tbl
Register-ArgumentCompleter -Native -CommandName tbl -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $commands = [ordered]@{
` + names.String() + `  }
  $flags = @{
` + flags.String() + `  }
  $values = @{
` + values.String() + `  }
  $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
  $complete = {
    param($list)
    $list | Where-Object { $_.StartsWith($wordToComplete) } | ForEach-Object {
      [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
  }
  if ($words.Count -lt 2) {
    & $complete @($commands.Keys)
    return
  }
  $command = $words[1]
  # What nothing is said about, PowerShell completes as a file.
  if ($values.ContainsKey("$command $($words[-1])")) {
    & $complete $values["$command $($words[-1])"]
  } elseif ($wordToComplete.StartsWith('-') -and $flags.ContainsKey($command)) {
    & $complete $flags[$command]
  } elseif ($values.ContainsKey($command)) {
    & $complete $values[$command]
  }
}
`
}
