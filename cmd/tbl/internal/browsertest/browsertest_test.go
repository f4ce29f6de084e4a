package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// faulty has one of each mistake that the checks must find, beside texts that
// are all right.
const faulty = `<!DOCTYPE html><html lang="en"><head><title>t</title><link rel="icon" href="data:,">
<style>:root{color-scheme:light dark}
#pale{color:#aaa;background:#fff} #faint{opacity:.3} #big{font-size:30px;color:#888;background:#fff}
@media (prefers-color-scheme: dark){#night{color:#333}}
#gone{display:none;color:#fff;background:#fff}
</style></head><body>
<p>plain</p><p id=pale>pale</p><p id=faint>faint</p><p id=big>big</p><p id=night>night</p><p id=gone>gone</p>
<p style="background:#000"><span style="color:#fff">on black</span></p>
<svg role="img" aria-labelledby="n" width=200 height=60><title id=n>two bars</title>
<rect width=100 height=30 fill="#000"/><rect y=30 width=100 height=0 fill="#000"/><line x1=0 x2=100 y1=50 y2=50 stroke="#000"/>
<text x=10 y=20 fill="#fff">on bar</text><text x=110 y=20 fill="#fff">off bar</text></svg>
<svg width=10 height=10></svg>
<img src="http://127.0.0.1:1/x.png" alt="">
<script>console.error("told", 7); setTimeout(() => { document.body.dataset.late = "1"; throw new Error("thrown") }, 10)</script>
</body></html>`

func TestBrowser(t *testing.T) {
	b := Start(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, faulty)
	}))
	t.Cleanup(srv.Close)

	t.Run("mistakes are found", func(t *testing.T) {
		p := b.Open(t, srv.URL+"/", Options{})
		p.Await(`document.body.dataset.late === "1"`)
		if got := p.Foreign(); !slices.Equal(got, []string{"http://127.0.0.1:1/x.png"}) {
			t.Errorf("foreign requests %v", got)
		}
		said := strings.Join(p.Errors(), "\n")
		for _, want := range []string{"told 7", "thrown", "127.0.0.1:1/x.png"} {
			if !strings.Contains(said, want) {
				t.Errorf("errors miss %q:\n%s", want, said)
			}
		}
		failing := func() string {
			texts, low := p.Contrast()
			if texts != 8 {
				t.Errorf("%d texts, want 8", texts)
			}
			var out []string
			for _, l := range low {
				out = append(out, l.Text)
			}
			return strings.Join(out, ",")
		}
		if got, want := failing(), "pale,faint,off bar"; got != want {
			t.Errorf("low contrast in light: %s, want %s", got, want)
		}
		p.Dark(true)
		if got, want := failing(), "pale,faint,night"; got != want {
			t.Errorf("low contrast in dark: %s, want %s", got, want)
		}
		want := []Chart{{Name: "two bars", Marks: 2, Texts: 2}, {}}
		if got := p.Charts("svg"); !slices.Equal(got, want) {
			t.Errorf("charts %+v, want %+v", got, want)
		}
		png := filepath.Join(t.TempDir(), "page.png")
		p.Screenshot(png)
		if raw, err := os.ReadFile(png); err != nil || !strings.HasPrefix(string(raw), "\x89PNG") {
			t.Errorf("screenshot: %v, %d bytes", err, len(raw))
		}
	})
	t.Run("no JavaScript", func(t *testing.T) {
		p := b.Open(t, srv.URL+"/", Options{NoJavaScript: true, Dark: true})
		if got := strings.Join(p.Errors(), "\n"); strings.Contains(got, "told") {
			t.Errorf("the script ran: %s", got)
		}
		if got := p.Text("p"); got != "plain" {
			t.Errorf("first text %q", got)
		}
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "page.html")
		page := strings.NewReplacer("http://127.0.0.1:1/x.png", "other.png").Replace(faulty)
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		p := b.Open(t, "file://"+path, Options{})
		if got := p.Foreign(); len(got) != 1 || !strings.HasSuffix(got[0], "other.png") {
			t.Errorf("foreign requests %v", got)
		}
	})
}
