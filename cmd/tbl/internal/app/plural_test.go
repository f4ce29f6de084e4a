package app

import (
	"regexp"
	"testing"
)

// TestOneIsNoPlural: what there is one of is no "1 cores".
func TestOneIsNoPlural(t *testing.T) {
	// Not "step 1 names", nor the columns of "tmm 0:          1 writes".
	plural := regexp.MustCompile(`(^|[^p ] )1 (cores|names|nodes|transactions|writes|runs|keys|requests|times)\b`)
	for _, args := range [][]string{
		{"load", "--count", "1", "--cores", "1", "--clock", "model"},
		{"load", "--count", "1", "--cores", "1", "--clock", "model", "--dry-run"},
		{"validate", "--cores", "1", "--clock", "model"},
		{"sticky", "--nodes", "1", "--transactions", "1", "--cores", "1"},
		{"whoami", "--cores", "1", "--clock", "model"},
		{"info", "--cores", "1", "--clock", "model"},
		{"find-names", "--cores", "1", "--clock", "model"},
	} {
		code, stdout, stderr := run(t, "", append(args, "--seed", "1")...)
		if code == exitUsage || stdout == "" {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
		if bad := plural.FindString(stdout); bad != "" {
			t.Errorf("%v: %q in\n%s", args, bad, stdout)
		}
	}
}
