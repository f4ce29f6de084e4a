// Package metrics offers counters in Prometheus' form: those of a served
// dataplane, and the progress of a run while it goes on. Each has a registry
// of its own.
package metrics

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tbl/timingstats"
)

// Path is where metrics are scraped.
const Path = "/metrics"

// handler answers a scrape of what the collectors have, and of this process.
func handler(version string, own ...prometheus.Collector) http.Handler {
	reg := prometheus.NewRegistry()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tbl_build_info", Help: "Always 1; the labels say which build this is.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	reg.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reg.MustRegister(own...)
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
		// A figure that can't be had is left out; the others are still true.
		ErrorHandling: promhttp.ContinueOnError,
	})
}

// gauge is a metric of one moment, as a collector hands it out. The labels
// are as many as the description has: another number is a mistake in this
// package.
func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// counter is gauge for what only grows.
func counter(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

// coreLabels are the labels of everything that is a core's, in this order.
var coreLabels = []string{"core", "slot"}

// ofCore are the values of coreLabels.
func ofCore(id timingstats.CoreID) (core, slot string) {
	return strconv.Itoa(id.Core), strconv.Itoa(id.Slot)
}

// Server is a listener with metrics and nothing else.
type Server struct {
	ln   net.Listener
	srv  *http.Server
	done chan struct{}
}

// Serve offers h under Path on the address, HOST:PORT, until Close.
func Serve(ctx context.Context, addr string, h http.Handler) (*Server, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, h)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "metrics of a run of tbl are at "+Path+"\n")
	})
	s := &Server{
		ln: ln,
		srv: &http.Server{
			Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
			MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0),
		},
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		// It ends by Close; a listener that breaks earlier takes the metrics
		// away, not the run.
		_ = s.srv.Serve(ln)
	}()
	return s, nil
}

// Addr is the address that is listened on.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Close stops listening and ends the scrapes under way.
func (s *Server) Close() error {
	err := s.srv.Close()
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
