package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tbl/target"
	"tbl/target/httpserve"
	"tbl/timingstats"
)

// DataplaneConfig says what a dataplane's metrics are made of.
type DataplaneConfig struct {
	// Stats appends the counters of every core. Required.
	Stats func([]target.CoreStats) []target.CoreStats
	// Counts are the server's counters. Required.
	Counts func() httpserve.Counts
	// Slot is the blade's number, 0 without a chassis.
	Slot int
	// Faults are the deliberate mistakes that are switched on, as the command
	// line spells them.
	Faults []string
	// Version is the build's.
	Version string
	// Start is when the dataplane started.
	Start time.Time
}

// Dataplane answers scrapes with a served dataplane's counters. They are read
// when somebody asks, not before.
func Dataplane(cfg DataplaneConfig) http.Handler {
	return handler(cfg.Version, &dataplane{cfg: cfg, d: newDataplaneDescs()})
}

type dataplane struct {
	cfg DataplaneConfig
	d   dataplaneDescs
}

// dataplaneDescs are the descriptions of a dataplane's metrics.
type dataplaneDescs struct {
	writes, expired, connections *prometheus.Desc
	entries, bytes, subtables    *prometheus.Desc
	requests, accepted, evicted  *prometheus.Desc
	open, fault, start           *prometheus.Desc
}

func newDataplaneDescs() dataplaneDescs {
	core := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc("tbl_core_"+name, help, append(append([]string(nil), coreLabels...), more...), nil)
	}
	one := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("tbl_"+name, help, labels, nil)
	}
	return dataplaneDescs{
		writes:      core("writes_total", "Writes that the core made: local into its own storage, remote into another core's.", "locality"),
		expired:     core("expired_entries_total", "Entries of the core's storage that ran out of time."),
		connections: core("connections_total", "Connections that the core served, one request each."),
		entries:     core("entries", "Entries in the core's storage."),
		bytes:       core("storage_bytes", "Size of the core's entries."),
		subtables:   core("subtables", "Subtables in the core's storage."),
		requests:    one("http_requests_total", "HTTP requests, those of this page and of metrics included."),
		accepted:    one("http_connections_accepted_total", "TCP connections accepted."),
		evicted:     one("http_connections_evicted_total", "TCP connections closed to make room for others."),
		open:        one("http_open_connections", "TCP connections that are open."),
		fault:       one("fault_info", "Always 1; one for each deliberate mistake that is switched on.", "fault"),
		start:       one("start_time_seconds", "When the dataplane started, in seconds since 1970."),
	}
}

// Describe sends the descriptions.
func (p *dataplane) Describe(ch chan<- *prometheus.Desc) {
	d := &p.d
	for _, x := range []*prometheus.Desc{d.writes, d.expired, d.connections, d.entries, d.bytes, d.subtables, d.requests, d.accepted, d.evicted, d.open, d.fault, d.start} {
		ch <- x
	}
}

// Collect reads the counters.
func (p *dataplane) Collect(ch chan<- prometheus.Metric) {
	d := &p.d
	for _, c := range p.cfg.Stats(nil) {
		core, slot := ofCore(timingstats.CoreID{Slot: p.cfg.Slot, Core: c.Core})
		ch <- counter(d.writes, float64(c.WritesLocal), core, slot, "local")
		ch <- counter(d.writes, float64(c.WritesRemote), core, slot, "remote")
		ch <- counter(d.expired, float64(c.Expired), core, slot)
		ch <- counter(d.connections, float64(c.Connections), core, slot)
		ch <- gauge(d.entries, float64(c.Entries), core, slot)
		ch <- gauge(d.bytes, float64(c.Bytes), core, slot)
		ch <- gauge(d.subtables, float64(c.Subtables), core, slot)
	}
	n := p.cfg.Counts()
	ch <- counter(d.requests, float64(n.Requests))
	ch <- counter(d.accepted, float64(n.Accepted))
	ch <- counter(d.evicted, float64(n.Evicted))
	ch <- gauge(d.open, float64(n.Open))
	for _, f := range p.cfg.Faults {
		ch <- gauge(d.fault, 1, f)
	}
	ch <- gauge(d.start, float64(p.cfg.Start.UnixMilli())/1000)
}
