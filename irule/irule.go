// Package irule holds the BIG-IP's half of the wire contract: two iRules, a
// library that gives each TMM a subtable of its own (LOCALDB) and a harness
// that serves the endpoints from it, rendered with a deployment's options
// filled in.
package irule

import (
	"cmp"
	_ "embed" // the two rules
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed localdb.tcl
var localdbSource string

//go:embed harness.tcl
var harnessSource string

// Names of the rules on the BIG-IP. The harness calls the library by its
// name, so LocaldbName is fixed.
const (
	LocaldbName = "LOCALDB"
	HarnessName = "LOCALDB_HARNESS"
)

// Defaults of Options' fields.
const (
	DefaultSample     = 1000
	DefaultThreshold  = 100
	DefaultCandidates = 1_000_000
	// DefaultMaxBody is the wire contract's bound of a bulk load, in bytes.
	DefaultMaxBody = 16 << 20
	// DefaultBodyTimeoutMS is how long a body may take to arrive.
	DefaultBodyTimeoutMS = 10_000
)

// Options are what a deployment may choose. The zero value is valid: no
// sampled log, everything else at its default, private source addresses only.
type Options struct {
	// Sample logs one write in Sample per TMM. 0 is silent, 1 logs every write.
	// DefaultOptions has 1000.
	Sample int
	// Threshold is the number of clicks from which an operation counts as
	// remote. 0: 100.
	Threshold int
	// MaxTries bounds the names that a TMM tries before it gives up looking
	// for one it owns. 0: max(200, 25·N) with N the number of TMMs.
	MaxTries int
	// Candidates is how many names localdb_tmm_<tmm>_<0…Candidates-1> a TMM
	// draws from. 0: 1,000,000. 1 together with MaxTries 1 gives fixed names,
	// the mistake that the tool is there to show.
	Candidates int
	// Secret, when not empty, is the bearer secret that every endpoint that
	// writes, deletes or lists asks for. Letters, digits and -._~+/= only.
	Secret string
	// Allow limits the source addresses of the same endpoints. With a Secret
	// and an Allow a request needs both. With neither, private and loopback
	// addresses are allowed, so that a rule pasted without thought is no open
	// door; 0.0.0.0/0 and ::/0 open it.
	Allow []netip.Prefix
	// MaxBody is the largest body of /bulk_load in bytes. 0: 16 MiB.
	MaxBody int
	// BodyTimeoutMS is how long a body may take to arrive, in milliseconds.
	// 0: 10,000.
	BodyTimeoutMS int
	// Virtual names the virtual server that TMSH attaches the harness to.
	// Empty: /Common/tbl_localdb.
	Virtual string
	// Destination, when valid, makes TMSH define the virtual server; otherwise
	// it only attaches the rule to one that exists.
	Destination netip.AddrPort
}

// DefaultOptions are the options of a plain "tbl irule".
func DefaultOptions() Options { return Options{Sample: DefaultSample} }

// PrivatePrefixes are the sources allowed where Options has neither a Secret
// nor an Allow.
func PrivatePrefixes() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"),
		netip.MustParsePrefix("::1/128"),
		netip.MustParsePrefix("fc00::/7"),
	}
}

// Compiled when first needed: most runs of a program that holds the rules
// render none.
var (
	secretRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9._~+/=-]{1,256}$`)
	})
	virtualRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*/?[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	})
)

// Validate reports the first option that can't be rendered.
func (o Options) Validate() error {
	for _, f := range []struct {
		name     string
		value    int
		min, max int
	}{
		{"sample", o.Sample, 0, 1_000_000_000},
		{"threshold", o.Threshold, 0, 1_000_000_000},
		{"max-tries", o.MaxTries, 0, 1_000_000},
		{"candidates", o.Candidates, 0, 1_000_000_000},
		{"max-body", o.MaxBody, 0, 1 << 30},
		{"body-timeout", o.BodyTimeoutMS, 0, 3_600_000},
	} {
		if f.value < f.min || f.value > f.max {
			return fmt.Errorf("%s %d: want %d to %d", f.name, f.value, f.min, f.max)
		}
	}
	if o.Secret != "" && !secretRE().MatchString(o.Secret) {
		return fmt.Errorf("secret: want 1 to 256 letters, digits or -._~+/=, because it goes into a Tcl string and an HTTP header")
	}
	for _, p := range o.Allow {
		if !p.IsValid() || p.Addr().Zone() != "" {
			return fmt.Errorf("allow %v: not an address range", p)
		}
	}
	if o.Virtual != "" && !virtualRE().MatchString(o.Virtual) {
		return fmt.Errorf("virtual %q: want a name or /partition/name", o.Virtual)
	}
	if o.Destination != (netip.AddrPort{}) && (!o.Destination.IsValid() || o.Destination.Port() == 0 || o.Destination.Addr().Zone() != "") {
		return fmt.Errorf("destination %v: want an address and a port", o.Destination)
	}
	return nil
}

// Localdb is the library rule with o filled in.
func Localdb(o Options) (string, error) {
	if err := o.Validate(); err != nil {
		return "", err
	}
	return render(localdbSource, o), nil
}

// Harness is the rule that serves the endpoints, with o filled in.
func Harness(o Options) (string, error) {
	if err := o.Validate(); err != nil {
		return "", err
	}
	return render(harnessSource, o), nil
}

// render replaces the @NAME@ marks of a rule.
func render(source string, o Options) string {
	allow := o.Allow
	if len(allow) == 0 && o.Secret == "" {
		allow = PrivatePrefixes()
	}
	ranges := make([]string, len(allow))
	for i, p := range allow {
		ranges[i] = p.Masked().String()
	}
	return strings.NewReplacer(
		"@SAMPLE@", strconv.Itoa(o.Sample),
		"@THRESHOLD@", strconv.Itoa(cmp.Or(o.Threshold, DefaultThreshold)),
		"@MAX_TRIES@", strconv.Itoa(o.MaxTries),
		"@CANDIDATES@", strconv.Itoa(cmp.Or(o.Candidates, DefaultCandidates)),
		"@MAX_BODY@", strconv.Itoa(cmp.Or(o.MaxBody, DefaultMaxBody)),
		"@BODY_TIMEOUT_MS@", strconv.Itoa(cmp.Or(o.BodyTimeoutMS, DefaultBodyTimeoutMS)),
		"@SECRET@", o.Secret,
		"@ALLOW@", strings.Join(ranges, " "),
	).Replace(source)
}
