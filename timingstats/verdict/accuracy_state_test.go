package verdict_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tally is what is counted of runs, cell by cell, and how far each kind of runs
// has come; it is what a state file holds.
type tally[C summand[C]] struct {
	mu sync.Mutex
	// Form says which grid is counted: counts of two forms don't add up.
	Form  string
	Cells map[string]C
	Done  map[string]int64 // seeds run, by dataplane and cores
}

// summand is a cell: counts that add up.
type summand[C any] interface{ plus(C) C }

// counts is the tally of LOCALITY.
type counts struct{ tally[cell] }

func newCounts(planes []dataplane) *counts { return &counts{tally[cell]{Form: form(planes)}} }

// accuracyForm changes when the same seeds are no longer the same runs, or are
// judged in another way.
const accuracyForm = 3

// form describes a grid.
func form(planes []dataplane) string {
	parts := []string{fmt.Sprintf("form %d, cores %v", accuracyForm, gridCores)}
	for i := range planes {
		d := &planes[i]
		part := fmt.Sprintf("%s (%s) %v", d.Name, d.fault, d.sizes)
		if len(d.shares) > 0 {
			part += fmt.Sprintf(" shares %v", d.shares)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// grid is every cell, row by row.
func grid(planes []dataplane) iter.Seq[key] {
	return func(yield func(key) bool) {
		for i := range planes {
			d := &planes[i]
			for _, s := range append([]float64{0}, d.shares...) {
				for _, cores := range gridCores {
					for _, n := range d.sizes {
						if !yield(key{d.Name, s, cores, n}) {
							return
						}
					}
				}
			}
		}
	}
}

// load goes on from a state file, if there is one. It must be of the same form.
func (c *tally[C]) load(file string) error {
	c.Cells, c.Done = map[string]C{}, map[string]int64{}
	if file == "" {
		return nil
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	want := c.Form
	c.Form = ""
	if err := json.Unmarshal(b, c); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if c.Form != want {
		return fmt.Errorf("%s counts another grid: give another file, or remove it\nits grid:  %s\nthe grid: %s", file, c.Form, want)
	}
	return nil
}

// save keeps the counts; with no file it does nothing. A reader never sees half
// of them.
func (c *tally[C]) save(file string) error {
	if file == "" {
		return nil
	}
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// fill runs one kind of runs on all processors until there are enough of them
// or the time is up, and says how many were made. Each processor makes its runs
// with a function of its own, which puts the cells of one run into a map.
func (c *tally[C]) fill(t *testing.T, id string, runs int, until time.Time, runner func() func(seed uint64, into map[string]C) error) int64 {
	t.Helper()
	before := c.Done[id]
	var next atomic.Int64
	next.Store(before)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			run := runner()
			for until.IsZero() || time.Now().Before(until) {
				seed := next.Add(1)
				if seed > int64(runs) {
					break
				}
				mine := map[string]C{}
				if err := run(uint64(seed), mine); err != nil {
					t.Errorf("%s cores, seed %d: %v", id, seed, err)
					break
				}
				c.mu.Lock()
				c.Done[id] = max(c.Done[id], seed)
				for k, one := range mine {
					c.Cells[k] = c.Cells[k].plus(one)
				}
				c.mu.Unlock()
			}
		})
	}
	wg.Wait()
	return c.Done[id] - before
}

// place puts text into a page between two marks, in place of what is there.
func place(page, begin, text, end string) (string, error) {
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("no place for the tables: %q … %q", begin, end)
	}
	return before + begin + text + end + after, nil
}

// rewrite puts text into a file, between two marks; a new one holds nothing else.
func rewrite(file, begin, text, end string) error {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = []byte(begin+end), nil
	}
	if err != nil {
		return err
	}
	page, err := place(string(raw), begin, text, end)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(page), 0o644)
}

// checkPage holds what a page says between two marks against what was counted.
// UPDATE=1 writes it anew.
func checkPage(t *testing.T, begin, text, end string) {
	t.Helper()
	const page = "testdata/accuracy.md"
	if os.Getenv("UPDATE") != "" {
		if err := rewrite(page, begin, text, end); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := place(string(raw), begin, text, end)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(raw) {
		t.Errorf("%s does not say what was counted: UPDATE=1 go test -run %s ./timingstats/verdict writes it anew", page, t.Name())
	}
}

// The place of the tables in the page that they are written into, and within
// that of what USAGE.md shows of them.
const (
	pageBegin  = "<!-- locality: begin -->\n"
	pageEnd    = "<!-- locality: end -->\n"
	usageBegin = "<!-- for USAGE: begin -->\n"
	usageEnd   = "<!-- for USAGE: end -->\n"
)

// text is the tables with what stands around them.
func (c *counts) text(planes []dataplane) string {
	summary, table := c.tables(planes)
	return usageBegin + summary + "\n" + c.exceptions(planes) + usageEnd +
		"\nOne by one:\n\n" + table
}

// TestAccuracyPage: what the page says is what was counted, and what was
// counted meets the aims, but for the cells that the page names. UPDATE=1 writes
// the page anew.
func TestAccuracyPage(t *testing.T) {
	planes := dataplanes(true)
	c := newCounts(planes)
	if err := c.load("testdata/accuracy.json"); err != nil {
		t.Fatal(err)
	}
	for k := range grid(planes) {
		if n := c.Cells[k.String()].Runs; n < 10_000 {
			t.Errorf("%v: %d runs, want 10,000", k, n)
		}
	}
	c.check(t, planes)
	var missed []string
	for _, k := range c.missed(planes) {
		missed = append(missed, k.String())
	}
	if want := []string{"healthy, 2 % jitter|0|16|25"}; !slices.Equal(missed, want) {
		t.Errorf("not within the aims: %q, want %q", missed, want)
	}
	checkPage(t, pageBegin, c.text(planes), pageEnd)
}

// TestAccuracyStateIsOfOneGrid: counts go on from where they were, and only on
// the grid that they are of.
func TestAccuracyStateIsOfOneGrid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	long, short := dataplanes(true), dataplanes(false)
	c := newCounts(short)
	if err := c.load(file); err != nil {
		t.Fatal(err)
	}
	c.Cells["x"], c.Done["y"] = cell{Runs: 3}, 3
	if err := c.save(file); err != nil {
		t.Fatal(err)
	}
	again := newCounts(short)
	if err := again.load(file); err != nil || again.Cells["x"].Runs != 3 || again.Done["y"] != 3 {
		t.Errorf("%v, %v, error %v", again.Cells, again.Done, err)
	}
	other := newCounts(long)
	if err := other.load(file); err == nil || !strings.Contains(err.Error(), "another grid") {
		t.Errorf("counts of the short form are taken for those of the long one: %v", err)
	}
	if err := os.WriteFile(file, []byte(`{"Cells": {}, "Done": {}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	old := newCounts(long)
	if err := old.load(file); err == nil {
		t.Error("counts that say nothing of their grid are taken")
	}
}
