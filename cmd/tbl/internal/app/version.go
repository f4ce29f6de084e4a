package app

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// Set by the release build with -ldflags -X; empty in a plain build, but for
// the release, which is then a development one.
var (
	release = "devel"
	commit  string // what it was built from
	built   string // the moment of that commit, RFC 3339 in UTC
)

// build is what a binary knows of itself.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // with changes that are in no commit
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// thisBuild is what the release build set, or what the toolchain recorded.
func thisBuild() build {
	b := build{Version: release, Commit: commit, Time: built, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			case "vcs.time":
				b.Time = s.Value
			}
		}
	}
	return b
}

// version is the build in a line.
func version() string {
	b := thisBuild()
	at := b.Commit[:min(12, len(b.Commit))]
	if at == "" {
		at = "unknown"
	}
	if b.Modified {
		at += "+changes"
	}
	return fmt.Sprintf("%s (commit %s, %s %s/%s)", b.Version, at, b.Go, b.OS, b.Arch)
}

// versionFormats are the values of version's --format.
func versionFormats() []string { return []string{"text", "json"} }

func (a *app) versionCommand() *cli.Command {
	return &cli.Command{
		Usage: "print version, commit and Go release",
		Flags: []cli.Flag{among(ownEnv("version", stringFlag("", "format", "text", "what goes to stdout: text, json")), versionFormats()...)},
		Action: func(c *cli.Context) error {
			if err := oneOf("format", c.String("format"), versionFormats()...); err != nil {
				return err
			}
			if c.String("format") == "json" {
				enc := json.NewEncoder(a.stdout)
				enc.SetIndent("", "  ")
				return enc.Encode(thisBuild())
			}
			_, err := fmt.Fprintf(a.stdout, "tbl %s\n", version())
			return err
		},
	}
}
