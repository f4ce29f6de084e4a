package commandref

import (
	"fmt"
	"strings"
)

// Shell is a shell that completion knows.
type Shell struct {
	Name string
	// Script is what the shell reads, for a program called tbl.
	Script func([]Command) string
}

// Shells is the table of them.
func Shells() []Shell {
	return []Shell{{"bash", bash}, {"zsh", zsh}, {"fish", fish}, {"powershell", powershell}}
}

// typed are all flags of a command as they are typed.
func (w *Command) typed() (out []string) {
	for i := range w.Flags {
		out = append(out, w.Flags[i].typed()...)
	}
	return out
}

// valueCases calls each for the flags of a command that take a value: those
// that are files together, those without a hint together, and each list of
// words.
func (w *Command) valueCases(each func(names, values []string, files bool)) {
	var files, free []string
	for i := range w.Flags {
		f := &w.Flags[i]
		switch {
		case !f.Value:
		case len(f.Words) > 0:
			each(f.typed(), f.Words, false)
		case f.Files:
			files = append(files, f.typed()...)
		default:
			free = append(free, f.typed()...)
		}
	}
	if len(files) > 0 {
		each(files, nil, true)
	}
	if len(free) > 0 {
		each(free, nil, false)
	}
}

func bash(cmds []Command) string {
	var names []string
	var cases strings.Builder
	for i := range cmds {
		w := &cmds[i]
		names = append(names, w.Names...)
		fmt.Fprintf(&cases, "    %s)\n      flags='%s'\n", strings.Join(w.Names, "|"), strings.Join(w.typed(), " "))
		if len(w.Words) > 0 {
			fmt.Fprintf(&cases, "      words='%s'\n", strings.Join(w.Words, " "))
		}
		fmt.Fprintf(&cases, "      files=%s\n      case $flag in\n", map[bool]string{true: "1", false: "''"}[w.Files])
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
  local cur=${COMP_WORDS[COMP_CWORD]} flag='' flags='' words='' files='' file
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
    case $cur in
      [\"\']*) cur=${cur:1} ;;
      *) cur=${cur//\\/} ;;
    esac
    # By lines: the names may hold spaces, and what a pattern would match.
    while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$cur")
  fi
}
complete -F _tbl tbl
`
}

func zsh(cmds []Command) string {
	var names, cases strings.Builder
	// In a list of _describe a colon ends the word.
	quote := strings.NewReplacer("'", `'\''`, ":", `\:`)
	for i := range cmds {
		w := &cmds[i]
		for _, n := range w.Names {
			fmt.Fprintf(&names, "    '%s:%s'\n", n, quote.Replace(w.Usage))
		}
		fmt.Fprintf(&cases, "    %s)\n      flags=(%s)\n", strings.Join(w.Names, "|"), strings.Join(w.typed(), " "))
		if len(w.Words) > 0 {
			fmt.Fprintf(&cases, "      values=(%s)\n", strings.Join(w.Words, " "))
		}
		fmt.Fprintf(&cases, "      files=%s\n      case $flag in\n", map[bool]string{true: "1", false: "''"}[w.Files])
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

func fish(cmds []Command) string {
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" }
	var b strings.Builder
	b.WriteString("# fish completion for tbl\ncomplete -c tbl -f\n")
	for i := range cmds {
		w := &cmds[i]
		for _, n := range w.Names {
			fmt.Fprintf(&b, "complete -c tbl -n __fish_use_subcommand -a %s -d %s\n", n, quote(w.Usage))
		}
		seen := quote("__fish_seen_subcommand_from " + strings.Join(w.Names, " "))
		if w.Files {
			fmt.Fprintf(&b, "complete -c tbl -n %s -F\n", seen)
		}
		if len(w.Words) > 0 {
			fmt.Fprintf(&b, "complete -c tbl -n %s -a %s\n", seen, quote(strings.Join(w.Words, " ")))
		}
		for i := range w.Flags {
			f := &w.Flags[i]
			fmt.Fprintf(&b, "complete -c tbl -n %s", seen)
			for _, n := range f.typed() {
				if long, ok := strings.CutPrefix(n, "--"); ok {
					fmt.Fprintf(&b, " -l %s", long)
				} else {
					fmt.Fprintf(&b, " -s %s", n[1:])
				}
			}
			switch {
			case len(f.Words) > 0:
				fmt.Fprintf(&b, " -x -a %s", quote(strings.Join(f.Words, " ")))
			case f.Files:
				b.WriteString(" -r -F")
			case f.Value:
				b.WriteString(" -x")
			}
			fmt.Fprintf(&b, " -d %s\n", quote(f.plain()))
		}
	}
	return b.String()
}

func powershell(cmds []Command) string {
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
		for _, n := range w.Names {
			fmt.Fprintf(&names, "    %s = %s\n", quote(n), quote(w.Usage))
			fmt.Fprintf(&flags, "    %s = %s\n", quote(n), list(w.typed()))
			if len(w.Words) > 0 {
				fmt.Fprintf(&values, "    %s = %s\n", quote(n), list(w.Words))
			}
			for i := range w.Flags {
				f := &w.Flags[i]
				for _, name := range f.typed() {
					if len(f.Words) > 0 {
						fmt.Fprintf(&values, "    %s = %s\n", quote(n+" "+name), list(f.Words))
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
