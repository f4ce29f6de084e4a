package table

import (
	"fmt"
	"testing"

	"tbl/target"
)

// TestNamesAreBounded: an inventory lists every name up to 65,536 of them, and
// the others once those are gone.
func TestNamesAreBounded(t *testing.T) {
	const bound, now = 65536, 1000
	st := new(Store)
	st.Init(1, now)
	for i := range bound + 3 {
		st.Exec(&Command{Verb: Verb(target.TableSet), Sub: fmt.Appendf(nil, "s%d", i), Key: []byte("k"), Timeout: target.Indefinite, Lifetime: target.Indefinite}, now)
	}
	seen := make(map[string]bool)
	for _, want := range []int{bound, 3, 0} {
		var ans target.Answer
		st.Exec(&Command{Verb: Names, Ans: &ans}, now)
		if len(ans.List) != want {
			t.Fatalf("%d names listed, want %d", len(ans.List), want)
		}
		for _, name := range ans.List {
			seen[string(name)] = true
			st.Exec(&Command{Verb: Verb(target.TableDeleteAll), Sub: name}, now)
		}
	}
	if len(seen) != bound+3 || st.Entries() != 0 {
		t.Errorf("%d names listed in all and %d entries left, want %d and 0", len(seen), st.Entries(), bound+3)
	}
}
