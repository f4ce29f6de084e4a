package live_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tbl/cmd/tbl/internal/browsertest"
	"tbl/cmd/tbl/internal/live"
	"tbl/target"
	"tbl/target/httpserve"
	"tbl/target/refplane"
)

// serve serves a dataplane with its status page until the test ends.
func serve(t *testing.T, cfg refplane.Config) (url string, plane *refplane.Plane) {
	t.Helper()
	plane, err := refplane.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var srv *httpserve.Server
	page := live.New(ctx, live.Config{
		Stats: plane.AppendStats, Counts: func() httpserve.Counts { return srv.Counts() },
		Facts: []live.Fact{{Name: "Seed", Value: "7"}}, Faults: []live.Fact{{Name: "jitter", Value: "some timings are inflated"}},
	})
	srv = httpserve.New(plane, httpserve.Config{Extra: page})
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, ln) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := plane.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String() + "/", plane
}

// write makes so many entries, in subtables that belong to one core or another.
func write(t *testing.T, p *refplane.Plane, from, n int) {
	t.Helper()
	var ans target.Answer
	for i := from; i < from+n; i++ {
		req := target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: fmt.Appendf(nil, "s%d", i%64), Key: fmt.Appendf(nil, "k%d", i), Value: []byte("v")}
		if err := p.Do(context.Background(), &req, &ans); err != nil {
			t.Error(err)
			return
		}
	}
}

// keepWriting writes the same entries again and again until the test ends.
func keepWriting(t *testing.T, p *refplane.Plane, n int) {
	t.Helper()
	write(t, p, 0, n)
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i = (i + 64) % n {
			select {
			case <-end:
				return
			case <-tick.C:
				write(t, p, i, min(64, n-i))
			}
		}
	}()
	t.Cleanup(func() {
		close(end)
		<-done
	})
}

func TestInBrowser(t *testing.T) {
	b := browsertest.Start(t)
	url, plane := serve(t, refplane.Config{Cores: 4, Seed: 7})
	keepWriting(t, plane, 2000)
	charts := func(t *testing.T, p *browsertest.Page, bars int) {
		t.Helper()
		got := p.Charts("svg[role=img]")
		if len(got) != 5 {
			t.Errorf("%d charts, want 5", len(got))
		}
		for _, c := range got {
			if c.Name == "" {
				t.Errorf("a chart without a name: %+v", c)
			}
			want := bars
			if c.Name == "Local and remote writes" {
				want = 2
			}
			// The two lines of a chart are marks too.
			if c.Name != "Local and remote writes" {
				want += 2
			}
			if c.Marks < want {
				t.Errorf("chart %q has %d marks, want %d at least", c.Name, c.Marks, want)
			}
		}
	}
	t.Run("live", func(t *testing.T) {
		p := b.Open(t, url, browsertest.Options{})
		p.Await(`Number(document.body.dataset.seen) >= 2`)
		charts(t, p, 4)
		if s := p.Text("#status"); !strings.HasPrefix(s, "Live") {
			t.Errorf("status %q", s)
		}
		if s := p.Text(`[data-total="Entries"]`); s == "2,500" {
			t.Error("2,500 entries already")
		}
		write(t, plane, 2000, 500) // a snapshot may come in their midst
		p.Await(`document.querySelector('[data-total="Entries"]').innerText === '2,500'`)
		p.Await(`document.querySelector('#share-text').innerText.includes('% of the writes lately')`)
		p.Healthy()
		if dir := os.Getenv("TBL_SCREENSHOTS"); dir != "" {
			p.Dark(false)
			p.Screenshot(filepath.Join(dir, "status-light.png"))
			p.Dark(true)
			p.Screenshot(filepath.Join(dir, "status-dark.png"))
		}

		// Paused, it asks for nothing and shows what it had.
		p.Eval(`document.querySelector('#pause').click()`, nil)
		if s := p.Text("#status"); s != "Paused." {
			t.Errorf("status %q", s)
		}
		asked := len(p.Requests())
		p.Eval(`document.querySelector('#pause').click()`, nil)
		p.Await(`document.querySelector('#status').innerText.startsWith('Live')`)
		if now := len(p.Requests()); now != asked+1 {
			t.Errorf("%d requests after going on, want %d", now, asked+1)
		}
	})
	t.Run("without JavaScript", func(t *testing.T) {
		p := b.Open(t, url, browsertest.Options{NoJavaScript: true, Dark: true})
		charts(t, p, 4)
		if s := p.Text("#status"); !strings.Contains(s, "every five seconds") {
			t.Errorf("status %q", s)
		}
		if s := p.Text(`[data-total="Entries"]`); s != "2,500" {
			t.Errorf("%s entries, want 2,500", s)
		}
		p.Healthy()
	})
	t.Run("a phone", func(t *testing.T) {
		p := b.Open(t, url, browsertest.Options{Width: 360, Height: 740})
		p.Await(`Number(document.body.dataset.seen) >= 1`)
		var wide bool
		if p.Eval(`document.documentElement.scrollWidth > innerWidth`, &wide); wide {
			t.Error("the page is wider than the screen")
		}
		p.Healthy()
	})
	t.Run("256 cores and no write", func(t *testing.T) {
		url, _ := serve(t, refplane.Config{Cores: 256, Seed: 7})
		p := b.Open(t, url, browsertest.Options{})
		p.Await(`Number(document.body.dataset.seen) >= 2`)
		if s := p.Text("#share-text"); s != "No writes yet." {
			t.Errorf("share %q", s)
		}
		p.Healthy()
	})
}
