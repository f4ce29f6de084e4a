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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counts is all cells, and how far each kind of runs has come; it is what the
// state file holds.
type counts struct {
	mu sync.Mutex
	// Form says which grid is counted: counts of two forms don't add up.
	Form  string
	Cells map[string]cell
	Done  map[string]int64 // seeds run, by dataplane and cores
}

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
func (c *counts) load(file string) error {
	c.Cells, c.Done = map[string]cell{}, map[string]int64{}
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
func (c *counts) save(file string) error {
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
// or the time is up, and says how many were made.
func (c *counts) fill(t *testing.T, d *dataplane, cores, runs int, until time.Time) int64 {
	t.Helper()
	id := fmt.Sprintf("%s|%d", d.Name, cores)
	before := c.Done[id]
	var next atomic.Int64
	next.Store(before)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var r runner
			for until.IsZero() || time.Now().Before(until) {
				seed := next.Add(1)
				if seed > int64(runs) {
					break
				}
				mine := map[key]cell{}
				if err := r.run(d, cores, uint64(seed), func(k key, one cell) { mine[k] = one }); err != nil {
					t.Errorf("%s, %d cores, seed %d: %v", d.Name, cores, seed, err)
					break
				}
				c.mu.Lock()
				c.Done[id] = max(c.Done[id], seed)
				for k, one := range mine {
					sum := c.Cells[k.String()]
					sum.add(one)
					c.Cells[k.String()] = sum
				}
				c.mu.Unlock()
			}
		})
	}
	wg.Wait()
	return c.Done[id] - before
}

// The place of the tables in the page that they are written into.
const (
	pageBegin = "<!-- locality: begin -->\n"
	pageEnd   = "<!-- locality: end -->\n"
)

// page puts the tables into text, in place of those there.
func (c *counts) page(text string, planes []dataplane) (string, error) {
	before, rest, ok := strings.Cut(text, pageBegin)
	_, after, ok2 := strings.Cut(rest, pageEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("no place for the tables: %q … %q", pageBegin, pageEnd)
	}
	summary, table := c.tables(planes)
	return before + pageBegin +
		"Over all sizes, with the least favourable one beside it:\n\n" + summary +
		"\nOne by one; in brackets the 95 % bounds (Clopper–Pearson):\n\n" + table +
		pageEnd + after, nil
}

// write puts the tables into a file; a new one holds nothing else.
func (c *counts) write(file string, planes []dataplane) error {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = []byte(pageBegin+pageEnd), nil
	}
	if err != nil {
		return err
	}
	text, err := c.page(string(raw), planes)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// TestAccuracyPage: what the page says is what was counted, and what was
// counted meets the aims. UPDATE=1 writes the page anew.
func TestAccuracyPage(t *testing.T) {
	const page, state = "testdata/accuracy.md", "testdata/accuracy.json"
	planes := dataplanes(true)
	c := counts{Form: form(planes)}
	if err := c.load(state); err != nil {
		t.Fatal(err)
	}
	for k := range grid(planes) {
		if n := c.Cells[k.String()].Runs; n < 10_000 {
			t.Errorf("%v: %d runs, want 10,000", k, n)
		}
	}
	c.check(t, planes)
	if os.Getenv("UPDATE") != "" {
		if err := c.write(page, planes); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.page(string(raw), planes)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(raw) {
		t.Errorf("%s does not say what %s holds: UPDATE=1 go test -run TestAccuracyPage ./timingstats/verdict writes it anew", page, state)
	}
}

// TestAccuracyStateIsOfOneGrid: counts go on from where they were, and only on
// the grid that they are of.
func TestAccuracyStateIsOfOneGrid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	long, short := form(dataplanes(true)), form(dataplanes(false))
	c := counts{Form: short}
	if err := c.load(file); err != nil {
		t.Fatal(err)
	}
	c.Cells["x"], c.Done["y"] = cell{Runs: 3}, 3
	if err := c.save(file); err != nil {
		t.Fatal(err)
	}
	again := counts{Form: short}
	if err := again.load(file); err != nil || again.Cells["x"].Runs != 3 || again.Done["y"] != 3 {
		t.Errorf("%v, %v, error %v", again.Cells, again.Done, err)
	}
	other := counts{Form: long}
	if err := other.load(file); err == nil || !strings.Contains(err.Error(), "another grid") {
		t.Errorf("counts of the short form are taken for those of the long one: %v", err)
	}
	if err := os.WriteFile(file, []byte(`{"Cells": {}, "Done": {}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	old := counts{Form: long}
	if err := old.load(file); err == nil {
		t.Error("counts that say nothing of their grid are taken")
	}
}
