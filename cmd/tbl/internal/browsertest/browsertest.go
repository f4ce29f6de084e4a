// Package browsertest opens pages in a headless Chromium for tests and says
// what a reader would meet there: marks, errors, requests, contrast. It is for
// tests only.
//
// One browser serves a package: start it in one test and open the pages in
// that test's subtests.
package browsertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds what a browser may take for one thing on a busy machine. It
// is what a hung browser costs, never what a test waits for.
const patience = 90 * time.Second

// binaries are the names of the browser, the first one found is taken.
var binaries = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// Browser is a running Chromium. It ends with the test that started it.
type Browser struct {
	ctx context.Context
}

// Start starts a browser with a fresh profile; without one on the machine the
// test is skipped.
func Start(t testing.TB) *Browser {
	t.Helper()
	var path string
	for _, name := range binaries {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("no chromium on this machine")
	}
	// A profile of its own, which the library deletes once the browser has ended.
	alloc, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.WSURLReadTimeout(patience),
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-extensions", true),
		chromedp.Flag("disable-default-apps", true),
		chromedp.Flag("mute-audio", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("password-store", "basic"),
		chromedp.Flag("use-mock-keychain", true),
	)
	ctx, closeBrowser := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		closeBrowser()
		stop()
	})
	// Without a deadline: it would be the browser's. The allocator has one.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return &Browser{ctx: ctx}
}

// Options are how a page is opened. The zero value is a reader with a light
// screen of 1280 × 900 and JavaScript.
type Options struct {
	Width, Height int  // of the window, CSS pixels; 0: 1280 × 900
	NoJavaScript  bool // scripts of the page don't run
	Dark          bool // prefers-color-scheme: dark
}

// Page is an open page. Its methods fail the test where the browser doesn't do
// what it is asked. Not safe for concurrent use.
type Page struct {
	t   testing.TB
	ctx context.Context
	url string

	mu       sync.Mutex
	requests []string
	errs     []string
}

// Open opens a page, an http(s) or a file URL, and returns when it has loaded.
// It is closed when the test ends.
func (b *Browser) Open(t testing.TB, address string, opt Options) *Page {
	t.Helper()
	ctx, closePage := chromedp.NewContext(b.ctx)
	t.Cleanup(closePage)
	p := &Page{t: t, ctx: ctx, url: address}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatalf("chromium opens no page: %v", err)
	}
	p.Do(
		command(network.Enable, network.EnableParams{}),
		chromedp.EmulateViewport(int64(cmp.Or(opt.Width, 1280)), int64(cmp.Or(opt.Height, 900))),
		command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: opt.NoJavaScript}),
		scheme(opt.Dark),
		chromedp.Navigate(address),
	)
	return p
}

// command is a step of the protocol itself.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// listen notes what the page asks for and complains about.
func (p *Page) listen(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, ev.Request.URL)
	case *network.EventWebSocketCreated:
		p.requests = append(p.requests, ev.URL)
	case *runtime.EventExceptionThrown:
		text := ev.ExceptionDetails.Text
		if x := ev.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		p.errs = append(p.errs, text)
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeAssert || ev.Type == runtime.ConsoleAPICalledTypeWarning {
			var words []string
			for _, a := range ev.Args {
				words = append(words, cmp.Or(strings.Trim(string(a.Value), `"`), a.Description))
			}
			p.errs = append(p.errs, fmt.Sprintf("console %s: %s", ev.Type, strings.Join(words, " ")))
		}
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.EntryLevelError || ev.Entry.Level == log.EntryLevelWarning {
			p.errs = append(p.errs, strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", ev.Entry.Source, ev.Entry.Level, ev.Entry.Text, ev.Entry.URL)))
		}
	}
}

// Requests are the addresses of everything that the page asked for so far, the
// page itself first; data: URLs, which go nowhere, are left out.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.requests), func(u string) bool { return strings.HasPrefix(u, "data:") })
}

// Foreign are the requests to anywhere but the page's own server, or for a
// file to anything but that file.
func (p *Page) Foreign() []string {
	return slices.DeleteFunc(p.Requests(), func(u string) bool {
		at, err1 := url.Parse(p.url)
		to, err2 := url.Parse(u)
		if err := errors.Join(err1, err2); err != nil {
			return false
		}
		if at.Scheme == "file" {
			return to.Scheme == "file" && to.Path == at.Path
		}
		return to.Scheme == at.Scheme && to.Host == at.Host
	})
}

// Errors are the exceptions, and what the page and the browser wrote to the
// console as errors and warnings: refused resources among them.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.errs)
}

// Do runs further steps of the library on the page.
func (p *Page) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	run(p, chromedp.Steps(steps...))
}

// run runs an action on the page, with the package's patience.
func run[T any](p *Page, a chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		p.t.Fatalf("%s: %v; the page says %v", p.url, err, p.Errors())
	}
	return v
}

// Eval evaluates a JavaScript expression and decodes its value, by way of
// JSON, into v, a pointer; nil: the value doesn't matter. A promise is waited
// for.
func (p *Page) Eval(js string, v any) {
	p.t.Helper()
	if v == nil {
		run(p, chromedp.Evaluate[chromedp.Void](js, chromedp.EvalAwaitPromise))
		return
	}
	raw := run(p, chromedp.Evaluate[[]byte](js, chromedp.EvalAwaitPromise))
	if err := json.Unmarshal(raw, v); err != nil {
		p.t.Fatalf("%s: %s is %s: %v", p.url, js, raw, err)
	}
}

// Await waits until a JavaScript expression is true.
func (p *Page) Await(js string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		var ok bool
		if p.Eval("!!("+js+")", &ok); ok {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: after %v it is still not so: %s; the page says %v", p.url, patience, js, p.Errors())
		}
		time.Sleep(50 * time.Millisecond) // another process: nothing to be told by
	}
}

// Text is the visible text of the first element of a CSS selector.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	var s string
	p.Eval(fmt.Sprintf("(document.querySelector(%q) || {}).innerText || ''", selector), &s)
	return s
}

// Dark switches between the dark and the light scheme.
func (p *Page) Dark(on bool) {
	p.t.Helper()
	p.Do(scheme(on))
}

// Paper shows the page as it is printed, in light.
func (p *Page) Paper() {
	p.t.Helper()
	p.Do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}))
}

func scheme(dark bool) chromedp.Action[chromedp.Void] {
	value := "light"
	if dark {
		value = "dark"
	}
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
	})
}

// Screenshot writes the whole page as a PNG file.
func (p *Page) Screenshot(path string) {
	p.t.Helper()
	if err := os.WriteFile(path, run(p, chromedp.FullScreenshot(100)), 0o644); err != nil {
		p.t.Fatal(err)
	}
}
