package runfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ReadAll reads what a user names as one: a file, a directory of .json files, or
// a glob. It returns one file at least. Its errors name the file, as Read's do.
func ReadAll(arg string) ([]*File, error) {
	paths := []string{arg}
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(arg, "*.json")); err != nil || len(paths) == 0 {
			return nil, fmt.Errorf("%s: no .json files in that directory", arg)
		}
	} else if err != nil && strings.ContainsAny(arg, "*?[") {
		if paths, err = filepath.Glob(arg); err != nil || len(paths) == 0 {
			return nil, fmt.Errorf("%s: no file matches", arg)
		}
	}
	var out []*File
	for _, p := range paths {
		f, err := Read(p)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}
