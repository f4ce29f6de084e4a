package input

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A file that is cut short while it is mapped is an error, not a crash.
func TestMappedFileCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := 0
	ok, err := mapped(f, 100, 1<<20, func(mem []byte) error {
		if err := os.Truncate(path, 4096); err != nil {
			return err
		}
		for _, c := range mem {
			sum += int(c)
		}
		return nil
	})
	if !ok && err == nil {
		t.Skip("files can't be mapped here")
	}
	if !errors.Is(err, ErrChanged) {
		t.Errorf("%v, sum %d", err, sum)
	}
	if _, err := mapped(f, 0, 4096, func([]byte) error { return fmt.Errorf("own") }); err == nil || err.Error() != "own" {
		t.Errorf("fn's error: %v", err)
	}
}
