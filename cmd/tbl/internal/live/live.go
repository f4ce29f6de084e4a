// Package live is the status page of a served dataplane: what its cores do,
// once a second, in a browser. The page is one embedded file without outside
// resources, drawn by the server, so that it says something without JavaScript
// too; with it, server-sent events keep it up to date.
//
// Nothing is measured while nobody looks.
package live

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"tbl/target"
	"tbl/target/httpserve"
)

// The paths that a Page answers.
const (
	PathPage   = "/"
	PathEvents = "/events"
)

// Defaults of Config.
const (
	DefaultEvery       = time.Second
	DefaultMaxWatchers = 64
	DefaultPatience    = 10 * time.Second
)

// Config says what a Page shows.
type Config struct {
	// Stats appends the counters of every core. Required.
	Stats func([]target.CoreStats) []target.CoreStats
	// Counts are the server's counters. Nil: the page leaves them out.
	Counts func() httpserve.Counts
	// Facts are the lines about the dataplane that don't change: name and value.
	Facts []Fact
	// Faults are the deliberate mistakes that are switched on.
	Faults []Fact
	// Title is the name of what is shown. Empty: "tbl serve".
	Title string
	// Every is the time between two readings while somebody watches. 0: 1 s.
	Every time.Duration
	// MaxWatchers bounds the event streams that are open at a time; more are
	// told to come back later, with 503. 0: 64.
	MaxWatchers int
	// Patience is how long a watcher may take for one event before its stream
	// is ended. 0: 10 s.
	Patience time.Duration
}

// Fact is a name and a value, as text.
type Fact struct{ Name, Value string }

// Page is the status page. It is safe for concurrent use.
type Page struct {
	cfg   Config
	end   <-chan struct{}
	start time.Time

	doc      *document
	mu       sync.Mutex
	last     [2]reading // the latest one, and the one before
	watchers map[*watcher]bool
	stop     chan struct{} // ends the goroutine that reads for the watchers; nil: there is none
}

// watcher is one open event stream. It gets the latest state; what it is too
// slow for, it misses.
type watcher struct{ next chan []byte }

// reading is what was counted at one moment.
type reading struct {
	at    time.Time
	cores []target.CoreStats
}

// New makes the page. When ctx is done, all its streams end.
func New(ctx context.Context, cfg Config) *Page {
	if cfg.Title == "" {
		cfg.Title = "tbl serve"
	}
	if cfg.Every <= 0 {
		cfg.Every = DefaultEvery
	}
	if cfg.MaxWatchers <= 0 {
		cfg.MaxWatchers = DefaultMaxWatchers
	}
	if cfg.Patience <= 0 {
		cfg.Patience = DefaultPatience
	}
	p := &Page{cfg: cfg, end: ctx.Done(), start: time.Now(), doc: newDocument(), watchers: map[*watcher]bool{}}
	p.last = [2]reading{{at: p.start}, {at: p.start}}
	return p
}

// Core is what one core did, in total and per second lately.
type Core struct {
	target.CoreStats
	WritesLocalPerS  float64 `json:"writes_local_per_s"`
	WritesRemotePerS float64 `json:"writes_remote_per_s"`
}

// State is what the page shows at one moment.
type State struct {
	UptimeNS int64 `json:"uptime_ns"`
	// WindowNS is the time that the rates are of.
	WindowNS int64             `json:"window_ns"`
	Cores    []Core            `json:"cores"`
	Server   *httpserve.Counts `json:"server,omitempty"`
}

// Bounds of the time between two readings that a rate is made of: a shorter one
// shows noise, a longer one the past. Where there is no reading between them,
// the rate is that since the start.
const (
	shortest = 200 * time.Millisecond
	longest  = time.Minute
)

// read takes a reading and compares it with the last one.
func (p *Page) read() *State {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	cores := p.cfg.Stats(nil)
	fresh := now.Sub(p.last[0].at) >= shortest
	from := p.last[0]
	if !fresh {
		from = p.last[1]
	}
	if now.Sub(from.at) > longest {
		from = reading{at: p.start}
	}
	since := now.Sub(from.at)
	s := &State{UptimeNS: int64(now.Sub(p.start)), WindowNS: int64(since), Cores: make([]Core, len(cores))}
	for i, c := range cores {
		s.Cores[i].CoreStats = c
		var was target.CoreStats
		if i < len(from.cores) {
			was = from.cores[i]
		}
		if sec := since.Seconds(); sec > 0 {
			s.Cores[i].WritesLocalPerS = float64(max(0, c.WritesLocal-was.WritesLocal)) / sec
			s.Cores[i].WritesRemotePerS = float64(max(0, c.WritesRemote-was.WritesRemote)) / sec
		}
	}
	if p.cfg.Counts != nil {
		n := p.cfg.Counts()
		s.Server = &n
	}
	if fresh {
		p.last = [2]reading{{now, cores}, p.last[0]}
	}
	return s
}

// ServeHTTP answers PathPage and PathEvents, and everything else with 404.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != PathPage && r.URL.Path != PathEvents {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "want GET", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == PathEvents {
		p.events(w, r)
		return
	}
	p.page(w)
}

// events streams the state until the client goes, is too slow, or the page
// ends.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodHead {
		h.Set("Content-Type", "text/event-stream")
		return
	}
	me := p.watch()
	if me == nil {
		h.Set("Retry-After", "30")
		http.Error(w, "too many watchers", http.StatusServiceUnavailable)
		return
	}
	defer p.leave(me)
	h.Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(b []byte) bool {
		// Renewed for each event: the server's own limit is for a whole answer.
		// Where the connection knows no deadlines, the server's limit holds.
		_ = out.SetWriteDeadline(time.Now().Add(p.cfg.Patience))
		if _, err := w.Write(b); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	if !send([]byte("retry: 2000\n\n")) || !send(event(p.read())) {
		return
	}
	for {
		select {
		case <-p.end:
			return
		case <-r.Context().Done():
			return
		case b := <-me.next:
			if !send(b) {
				return
			}
		}
	}
}

// event is the state as a server-sent event.
func event(s *State) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		// Numbers that are finite can be marshalled.
		b = []byte("{}")
	}
	return append(append([]byte("data: "), b...), '\n', '\n')
}

// watch adds a watcher, the first of whom starts the readings; nil when there
// are too many.
func (p *Page) watch() *watcher {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.watchers) >= p.cfg.MaxWatchers {
		return nil
	}
	me := &watcher{next: make(chan []byte, 1)}
	p.watchers[me] = true
	if p.stop == nil {
		p.stop = make(chan struct{})
		go p.tell(p.stop)
	}
	return me
}

// leave removes a watcher, the last of whom ends the readings.
func (p *Page) leave(me *watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watchers, me)
	if len(p.watchers) == 0 && p.stop != nil {
		close(p.stop)
		p.stop = nil
	}
}

// tell reads once in a while and hands what it read to the watchers.
func (p *Page) tell(stop <-chan struct{}) {
	tick := time.NewTicker(p.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		b := event(p.read())
		p.mu.Lock()
		for w := range p.watchers {
			select {
			case <-w.next: // it has not come to this one yet
			default:
			}
			w.next <- b
		}
		p.mu.Unlock()
	}
}
