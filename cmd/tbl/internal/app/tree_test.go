package app

import (
	"bytes"
	"context"
	"io"
	"testing"
)

// TestOneCommandIsBuiltAlone runs every command's help with that command alone
// in the tree, as Run does, and in the whole tree.
func TestOneCommandIsBuiltAlone(t *testing.T) {
	for _, e := range (&app{}).entries() {
		for _, name := range e.names {
			env := Env{Stdout: new(bytes.Buffer), Stderr: io.Discard, Getenv: func(string) string { return "" }}
			if code := Run(t.Context(), env, []string{name, "--help"}); code != 0 {
				t.Errorf("%s --help exits %d", name, code)
			}
			var want bytes.Buffer
			a := &app{env: env, stdout: &pipe{w: &want, gone: func() {}}}
			if err := a.cli().RunContext(context.Background(), []string{"tbl", name, "--help"}); err != nil {
				t.Errorf("%s --help in the whole tree: %v", name, err)
			}
			if got := env.Stdout.(*bytes.Buffer).String(); got != want.String() || got == "" {
				t.Errorf("%s --help says\n%s\nand in the whole tree\n%s", name, got, want.String())
			}
			if got := len((&app{}).needed([]string{name})); (got != 1) != e.whole {
				t.Errorf("%s builds %d commands", name, got)
			}
		}
	}
	all := len((&app{}).entries())
	for _, args := range [][]string{nil, {"--help"}, {"no-such-command"}, {"--quiet", "stats"}} {
		if got := len((&app{}).needed(args)); got != all {
			t.Errorf("%q builds %d commands of %d", args, got, all)
		}
	}
}
