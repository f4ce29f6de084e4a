package app

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"tbl/cmd/tbl/internal/live"
	"tbl/cmd/tbl/internal/metrics"
	"tbl/target/httpserve"
	"tbl/target/refplane"
)

// statusPages are what a server has beside the dataplane's endpoints: the
// status page and the metrics. All other paths stay unknown.
func statusPages(ctx context.Context, p *refplane.Plane, node string, counts func() httpserve.Counts) http.Handler {
	cfg := p.Config()
	faults := explained(cfg.Faults)
	var names []string
	for _, f := range faults {
		names = append(names, f.Name)
	}
	page := live.New(ctx, live.Config{Stats: p.AppendStats, Counts: counts, Facts: facts(cfg, node), Faults: faults})
	numbers := metrics.Dataplane(metrics.DataplaneConfig{
		Stats: p.AppendStats, Counts: counts, Slot: cfg.Slot, Faults: names, Version: release, Start: time.Now(),
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case live.PathPage, live.PathEvents:
			page.ServeHTTP(w, r)
		case metrics.Path:
			numbers.ServeHTTP(w, r)
		default:
			// As the server says it where there are no such pages.
			const text = "no such endpoint\n"
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, text)
		}
	})
}

// facts are what the status page says of the set-up.
func facts(cfg refplane.Config, node string) []live.Fact {
	sampled := "off"
	if cfg.LogSample > 0 {
		sampled = "1 in " + strconv.Itoa(cfg.LogSample) + " writes"
	}
	out := []live.Fact{
		{Name: "Cores", Value: strconv.Itoa(cfg.Cores)},
		{Name: "Seed", Value: strconv.FormatUint(cfg.Seed, 10)},
		{Name: "A connection's core is picked by", Value: cfg.DAG.String()},
		{Name: "Length of a click", Value: cfg.Click.String()},
		{Name: "Hand-off delay", Value: cfg.HandoffDelay.String()},
		{Name: "Remote from", Value: strconv.FormatInt(cfg.Threshold, 10) + " clicks"},
		{Name: "Sampled log", Value: sampled},
		{Name: "Version", Value: release},
	}
	if cfg.Slot > 0 {
		out = append(out, live.Fact{Name: "Slot", Value: strconv.Itoa(cfg.Slot)})
	}
	if node != "" {
		out = append(out, live.Fact{Name: "Node", Value: node})
	}
	return out
}

// explained are the faults with what they do. Of one kind the last counts.
func explained(faults []refplane.Fault) []live.Fact {
	var out []live.Fact
	for _, k := range refplane.FaultKinds() {
		for _, f := range slices.Backward(faults) {
			if f.Name == k.Name {
				out = append(out, live.Fact{Name: f.String(), Value: k.Help})
				break
			}
		}
	}
	return out
}
