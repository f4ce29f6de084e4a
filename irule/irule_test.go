package irule_test

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"tbl/irule"
)

func TestOptionsAreChecked(t *testing.T) {
	for _, tc := range []struct {
		o    irule.Options
		want string // part of the error, empty for none
	}{
		{irule.Options{}, ""},
		{irule.DefaultOptions(), ""},
		{irule.Options{Sample: -1}, "sample"},
		{irule.Options{Threshold: -1}, "threshold"},
		{irule.Options{MaxTries: -1}, "max-tries"},
		{irule.Options{MaxTries: 1_000_001}, "max-tries"},
		{irule.Options{Candidates: -1}, "candidates"},
		{irule.Options{MaxBody: 1<<30 + 1}, "max-body"},
		{irule.Options{BodyTimeoutMS: -1}, "body-timeout"},
		{irule.Options{Secret: "abc.DEF-123_~+/="}, ""},
		{irule.Options{Secret: `a"b`}, "secret"},
		{irule.Options{Secret: "a[exec]b"}, "secret"},
		{irule.Options{Secret: "a$b"}, "secret"},
		{irule.Options{Secret: "a b"}, "secret"},
		{irule.Options{Secret: "a\\b"}, "secret"},
		{irule.Options{Secret: "a}b"}, "secret"},
		{irule.Options{Secret: "a\n"}, "secret"},
		{irule.Options{Secret: strings.Repeat("x", 257)}, "secret"},
		{irule.Options{Allow: []netip.Prefix{{}}}, "allow"},
		{irule.Options{Virtual: "vs_1"}, ""},
		{irule.Options{Virtual: "/Common/app.app/vs"}, ""},
		{irule.Options{Virtual: "vs { }"}, "virtual"},
		{irule.Options{Virtual: "/"}, "virtual"},
		{irule.Options{Virtual: "a\nb"}, "virtual"},
		{irule.Options{Destination: netip.MustParseAddrPort("192.0.2.1:0")}, "destination"},
		{irule.Options{Destination: netip.MustParseAddrPort("[fe80::1%eth0]:80")}, "destination"},
		{irule.Options{Destination: netip.MustParseAddrPort("192.0.2.1:80")}, ""},
	} {
		for name, f := range map[string]func(irule.Options) (string, error){"localdb": irule.Localdb, "harness": irule.Harness, "tmsh": irule.TMSH} {
			text, err := f(tc.o)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s of %+v: %v", name, tc.o, err)
			case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want+" ") && !strings.HasPrefix(err.Error(), tc.want+":")):
				t.Errorf("%s of %+v: error %v, want one about %s", name, tc.o, err, tc.want)
			case tc.want != "" && text != "":
				t.Errorf("%s of %+v: text beside an error", name, tc.o)
			}
		}
	}
}

func TestOptionsAreFilledIn(t *testing.T) {
	o := irule.Options{
		Sample: 7, Threshold: 55, MaxTries: 444, Candidates: 1234, Secret: "s3cr3t", MaxBody: 4096, BodyTimeoutMS: 2500,
		Allow: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/8"), netip.MustParsePrefix("2001:db8::/32")},
	}
	localdb, err := irule.Localdb(o)
	if err != nil {
		t.Fatal(err)
	}
	harness, err := irule.Harness(o)
	if err != nil {
		t.Fatal(err)
	}
	for text, wants := range map[string][]string{
		localdb: {"static::localdb_sample 7\n", "static::localdb_threshold 55\n", "static::localdb_max_tries 444\n", "static::localdb_candidates 1234\n"},
		harness: {"static::harness_secret \"s3cr3t\"\n", "static::harness_allow \"10.0.0.0/8 2001:db8::/32\"\n", "static::harness_max_body 4096\n", "static::harness_body_ms 2500\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("no %q", want)
			}
		}
		if m := regexp.MustCompile(`@[A-Z_]+@`).FindString(text); m != "" {
			t.Errorf("%s is left", m)
		}
	}
	harness, err = irule.Harness(irule.Options{Secret: "s"})
	if err != nil || !strings.Contains(harness, "static::harness_allow \"\"\n") {
		t.Errorf("with a secret alone every address is asked for it: %v", err)
	}
	harness, err = irule.Harness(irule.Options{})
	if err != nil || !strings.Contains(harness, "static::harness_allow \"127.0.0.0/8 10.0.0.0/8 ") {
		t.Errorf("with nothing, private addresses are allowed: %v", err)
	}
}

// balanced says whether braces pair up the way a configuration file's parser
// counts them: in comments and strings too, without a look at backslashes.
func balanced(s string) bool {
	depth := 0
	for _, r := range s {
		switch r {
		case '{':
			depth++
		case '}':
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return depth == 0
}

func TestTMSH(t *testing.T) {
	attach, err := irule.TMSH(irule.Options{Virtual: "vs_1"})
	if err != nil {
		t.Fatal(err)
	}
	v4, err := irule.TMSH(irule.Options{Destination: netip.MustParseAddrPort("192.0.2.10:8080")})
	if err != nil {
		t.Fatal(err)
	}
	v6, err := irule.TMSH(irule.Options{Destination: netip.MustParseAddrPort("[2001:db8::1]:80")})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text  string
		wants []string
	}{
		{attach, []string{"merge from-terminal", "\nltm rule /Common/LOCALDB {\n", "\nltm rule /Common/LOCALDB_HARNESS {\n", "\nltm virtual /Common/vs_1 {\n    rules {\n        /Common/LOCALDB_HARNESS\n    }\n}\n"}},
		{v4, []string{"\nltm virtual /Common/tbl_localdb {\n    destination 192.0.2.10:8080\n", "mask 255.255.255.255\n", "/Common/http { }"}},
		{v6, []string{"destination 2001:db8::1.80\n"}},
	} {
		for _, want := range tc.wants {
			if !strings.Contains(tc.text, want) {
				t.Errorf("no %q", want)
			}
		}
		if !balanced(tc.text) {
			t.Error("braces do not pair up")
		}
	}
	if strings.Contains(attach, "destination") {
		t.Error("a virtual server is made without being asked for")
	}
}

// The rules are ASCII without tabs, and each by itself has its braces in pairs.
func TestRulesCanStandInAConfiguration(t *testing.T) {
	for name, f := range map[string]func(irule.Options) (string, error){"localdb": irule.Localdb, "harness": irule.Harness} {
		text, err := f(irule.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		if !balanced(text) {
			t.Errorf("%s: braces do not pair up", name)
		}
		for i, line := range strings.Split(text, "\n") {
			if strings.HasSuffix(line, " ") || strings.HasSuffix(line, "\\") {
				t.Errorf("%s:%d ends in a blank or backslash", name, i+1)
			}
			for _, r := range line {
				if r < ' ' || r > '~' {
					t.Errorf("%s:%d: %q", name, i+1, r)
				}
			}
		}
		if len(text) > 60_000 {
			t.Errorf("%s: %d bytes; a rule may have 65,535 at most", name, len(text))
		}
	}
}
