package irule

import (
	"fmt"
	"strings"
)

// DefaultVirtual is the virtual server that TMSH names when Options doesn't.
const DefaultVirtual = "/Common/tbl_localdb"

// TMSH is the input of "tmsh load sys config merge from-terminal" that loads
// both rules and attaches the harness to the virtual server. The library
// needs no attaching: the harness calls it by name.
func TMSH(o Options) (string, error) {
	localdb, err := Localdb(o)
	if err != nil {
		return "", err
	}
	harness, err := Harness(o)
	if err != nil {
		return "", err
	}
	virtual := o.Virtual
	if virtual == "" {
		virtual = DefaultVirtual
	}
	if !strings.HasPrefix(virtual, "/") {
		virtual = "/Common/" + virtual
	}
	var b strings.Builder
	b.WriteString("# Paste after: tmsh load sys config merge from-terminal\n")
	b.WriteString("# then end with Ctrl-D. Add the word verify to try it without effect.\n")
	b.WriteString("# Keep it afterwards with: tmsh save sys config\n")
	for _, r := range []struct{ name, text string }{{LocaldbName, localdb}, {HarnessName, harness}} {
		fmt.Fprintf(&b, "ltm rule /Common/%s {\n%s}\n", r.name, r.text)
	}
	if !o.Destination.IsValid() {
		fmt.Fprintf(&b, "# %s has to exist, with an http profile; its other rules are replaced.\n", virtual)
		fmt.Fprintf(&b, "ltm virtual %s {\n    rules {\n        /Common/%s\n    }\n}\n", virtual, HarnessName)
		return b.String(), nil
	}
	sep := ":"
	host := o.Destination.Addr().Unmap()
	mask := "255.255.255.255"
	if host.Is6() {
		sep, mask = ".", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
	}
	fmt.Fprintf(&b, "ltm virtual %s {\n    destination %s%s%d\n    ip-protocol tcp\n    mask %s\n", virtual, host, sep, o.Destination.Port(), mask)
	fmt.Fprintf(&b, "    profiles {\n        /Common/http { }\n        /Common/tcp { }\n    }\n    rules {\n        /Common/%s\n    }\n}\n", HarnessName)
	return b.String(), nil
}
