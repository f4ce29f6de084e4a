package httpserve

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"tbl/target"
)

// Server serves one target. It is safe for concurrent use.
type Server struct {
	tgt  target.Target
	cfg  Config
	auth []byte // the whole Authorization value, nil: none needed

	works    sync.Pool // of *work
	conns    connTable
	inFlight atomic.Int64 // bytes of bodies in memory
	requests atomic.Int64
}

// New prepares a server in front of tgt, which stays the caller's to close.
func New(tgt target.Target, cfg Config) *Server {
	cfg.HeaderTimeout = cmp.Or(cfg.HeaderTimeout, DefaultHeaderTimeout)
	cfg.BodyTimeout = cmp.Or(cfg.BodyTimeout, DefaultBodyTimeout)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, DefaultWriteTimeout)
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, DefaultIdleTimeout)
	cfg.MaxConns = cmp.Or(cfg.MaxConns, DefaultMaxConns)
	cfg.MaxHeader = cmp.Or(cfg.MaxHeader, DefaultMaxHeader)
	cfg.MaxInFlight = cmp.Or(cfg.MaxInFlight, DefaultMaxInFlight)
	s := &Server{tgt: tgt, cfg: cfg}
	s.conns.max = cfg.MaxConns
	if cfg.Token != "" {
		s.auth = []byte("Bearer " + cfg.Token)
	}
	return s
}

// Counts are what a Server has seen so far.
type Counts struct {
	Accepted int64 `json:"accepted"` // connections
	Evicted  int64 `json:"evicted"`  // connections closed to make room for others
	Open     int64 `json:"open"`     // connections now
	Requests int64 `json:"requests"`
}

// Counts reads the counters.
func (s *Server) Counts() Counts {
	c := s.conns.counts()
	c.Requests = s.requests.Load()
	return c
}

// Serve answers on ln until ctx is done, then stops accepting, lets requests
// under way finish for up to a second, closes what is left and returns nil.
// It closes ln. Any other end is an error.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.cfg.HeaderTimeout,
		WriteTimeout:      s.cfg.BodyTimeout + s.cfg.WriteTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    s.cfg.MaxHeader,
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnContext:       s.connContext,
		ConnState:         s.connState,
		Protocols:         http1(),
	}
	stopped := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-stopped:
			return
		}
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			srv.Close()
		}
	}()
	err := srv.Serve(ln)
	close(stopped)
	<-done
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	srv.Close()
	return err
}

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}
