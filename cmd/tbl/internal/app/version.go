package app

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// release is the version, set by the release build with -ldflags -X; a plain
// build is a development one.
var release = "devel"

// version is the release and the commit that the build recorded.
func version() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value[:min(12, len(s.Value))] + commit
			case "vcs.modified":
				if s.Value == "true" {
					commit += "+changes"
				}
			}
		}
	}
	if commit == "" {
		commit = "unknown"
	}
	return fmt.Sprintf("%s (commit %s, %s %s/%s)", release, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (a *app) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print version, commit and Go release",
		Action: func(*cli.Context) error {
			_, err := fmt.Fprintf(a.stdout, "tbl %s\n", version())
			return err
		},
	}
}
