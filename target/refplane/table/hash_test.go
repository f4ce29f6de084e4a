package table

import (
	"encoding/binary"
	"fmt"
	"testing"

	"tbl/target"
)

// TestHashOfCraftedKeys: keys that make a factor of the multiplications zero,
// the seed known or not, have hashes of their own, and fill a store like others.
func TestHashOfCraftedKeys(t *testing.T) {
	const seed, n = 7, 3000
	h := uint64(seed) ^ k0
	word := func(v uint64) string { return string(binary.LittleEndian.AppendUint64(nil, v)) }
	for name, key := range map[string]func(i int) string{
		"first word, short":  func(i int) string { return word(k2) + fmt.Sprintf("%08d", i) },
		"last word, short":   func(i int) string { return fmt.Sprintf("%08d", i) + word(h) },
		"first word, long":   func(i int) string { return word(k1) + fmt.Sprintf("%08d", i) + "12345678" },
		"second word, long":  func(i int) string { return fmt.Sprintf("%08d", i) + word(h) + "12345678" },
		"first word, 9 long": func(i int) string { return word(k2) + fmt.Sprintf("%c", i%128) },
	} {
		keys, tags := map[string]bool{}, map[uint32]bool{}
		for i := range n {
			k := key(i)
			keys[k] = true
			tags[uint32(Hash(seed, []byte(k))>>32)] = true
		}
		if len(tags) < len(keys)-len(keys)/100 {
			t.Errorf("%s: %d tags of %d keys", name, len(tags), len(keys))
		}
	}
	var st Store
	st.Init(seed, 1000)
	c := Command{Verb: Verb(target.TableSet), Sub: []byte("s"), Value: one, Timeout: loadTimeout}
	for i := range n {
		c.Key = []byte(word(k2) + fmt.Sprintf("%08d", i))
		st.Exec(&c, 1000)
	}
	if st.Entries() != n || len(st.keys.dir) > 16 {
		t.Errorf("%d entries, want %d; %d places in the directory", st.Entries(), n, len(st.keys.dir))
	}
	checkIndex(t, &st.keys)
}
