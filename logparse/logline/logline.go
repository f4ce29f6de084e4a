// Package logline tells what one line of a dataplane's log says, in every shape
// that syslog gives it: which are samples, probes and discovery lines, who wrote
// them and when. It is the part that runs for every byte of a log: it allocates
// nothing per line, and passes over what is not ours without parsing it.
package logline

// Kind is what a line is.
type Kind uint8

// The kinds. The zero value is a line that is none of ours.
const (
	KindOther      Kind = iota
	KindSample          // a timed write
	KindWrapped         // a sample whose clicks are negative or ≥ 2³¹: a wrapped counter
	KindTruncated       // a sample without its tail: lines are cut at 1,024 bytes
	KindMalformed       // starts like a sample but is none
	KindProbe           // a timed write into a name asked for
	KindDiscovery       // a core found its subtable, or gave up (Warning)
	KindHeld            // lines were held back or suppressed, see Line.Held
	KindCompressed      // no line of text: a gzip file begins here
	NumKinds
)

var kindNames = [NumKinds]string{
	KindOther: "other", KindSample: "sample", KindWrapped: "wrapped", KindTruncated: "truncated",
	KindMalformed: "malformed", KindProbe: "probe", KindDiscovery: "discovery", KindHeld: "held",
	KindCompressed: "compressed",
}

// String names the kind.
func (k Kind) String() string {
	if k < NumKinds {
		return kindNames[k]
	}
	return "unknown"
}

// Line is one parsed line. Which fields are filled depends on Kind; the
// slices point into the line that was parsed and live as long as it does.
type Line struct {
	Kind Kind

	// Stamp is the time as written, empty when the line has none; Time parses it.
	Stamp []byte
	// Host is the host as written, without "slotN/"; empty when there is none.
	Host []byte
	// Slot is the blade from "slotN/" before the host; 0 where there is none.
	Slot int
	// ProcCore is the core that the process name says, -1 where it says none.
	ProcCore int
	// PID is the process id, 0 when unknown.
	PID int64

	// Core is the number after "tmm=" (sample, wrapped, probe, discovery).
	Core int
	// Subtable is the name written to, or found, or given up with.
	Subtable []byte
	// Key is the key of a sample: any bytes.
	Key []byte
	// Writes is the core's own counter at this sample; -1 for a probe.
	Writes int64
	// Clicks is the time of the write (sample, wrapped, probe); for a discovery
	// line the difference that decided.
	Clicks int64
	// Rate is N of "sampled 1/N"; 1 for a probe.
	Rate int64
	// Entries is the number of entries that a probe reported.
	Entries int64
	// Fast is the tag FAST_LOCAL of a sample, OWNER of a probe.
	Fast bool
	// Unique says that the sample carries the mark "unique".
	Unique bool
	// Warning: a discovery line that says that no local name was found.
	Warning bool
	// Tries is the number of names that a discovery tried, TMMs its count of cores.
	Tries, TMMs int64
	// Held is the number of lines that a KindHeld line accounts for; 0 when it
	// doesn't say (throttled).
	Held int64

	cal *calendar
}
