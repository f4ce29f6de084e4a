// Package commandref writes what is made of a program's commands: completion
// scripts for shells, and the manual page. It knows the commands as plain
// values, from whatever library they come.
package commandref

import (
	"slices"
	"strings"
)

// Program is a program as its manual describes it.
type Program struct {
	Usage       string // what it is for, in one line
	Description string
	Version     string
	Date        string // of the version, 2006-01-02; empty: not known
	Commands    []Command
	// ExitCodes, Variables and Examples are named explanations. Of an example
	// the name is what it is for and the text the command line.
	ExitCodes, Variables, Examples []Term
}

// Term is something with its explanation.
type Term struct{ Name, Text string }

// Command is one command.
type Command struct {
	Names       []string // the first one leads, the others are aliases
	Args        string   // its arguments as the help writes them, empty: none
	Usage       string   // one line, without a capital and a full stop
	Description string   // may be empty
	Flags       []Flag
	Words       []string // what its argument is one of
	Files       bool     // its arguments are files
}

// Flag is one flag of a command.
type Flag struct {
	Names    []string // without dashes, the first one leads
	Category string   // flags of a category are common to several commands; empty: the command's own
	Usage    string   // a word in backquotes is the name of the value
	Default  string
	Value    bool     // a value follows
	Words    []string // words that the value is one of, or begins with where they end in "=", ":" or "@"
	Files    bool     // the value is a file
}

// typed are the flag's names as they are typed.
func (f *Flag) typed() []string {
	out := slices.Clone(f.Names)
	for i, n := range out {
		out[i] = dashed(n)
	}
	return out
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// plain is the usage without its backquotes.
func (f *Flag) plain() string { return strings.ReplaceAll(f.Usage, "`", "") }

// value is the name of the flag's value.
func (f *Flag) value() string {
	if _, rest, ok := strings.Cut(f.Usage, "`"); ok {
		name, _, _ := strings.Cut(rest, "`")
		return name
	}
	return "VALUE"
}
