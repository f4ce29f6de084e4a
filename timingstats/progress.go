package timingstats

import (
	"slices"
	"sync"
	"time"
)

// maxMarks bounds the memory of a progress; buckets cut from it are off by at
// most one part in maxMarks/2 of the run.
const maxMarks = 8192

// progress remembers when every k-th completion happened, and doubles k when
// it has remembered too many.
type progress struct {
	mu    sync.Mutex
	done  int64
	every int64 // k; 0 means 1
	next  int64 // the next completion to remember
	marks []mark
	last  time.Duration // moment of the latest completion
}

// mark says that done completions had happened at the moment at.
type mark struct {
	at   time.Duration
	done int64
}

func (p *progress) add(at time.Duration, n int64) {
	p.mu.Lock()
	p.done += n
	p.last = max(p.last, at)
	if p.done >= p.next {
		if p.every == 0 {
			p.every = 1
		}
		if len(p.marks) == maxMarks {
			p.every *= 2
			kept := p.marks[:0]
			for i := 1; i < maxMarks; i += 2 {
				kept = append(kept, p.marks[i])
			}
			p.marks = kept
		}
		p.marks = append(p.marks, mark{at: p.last, done: p.done})
		p.next = p.done + p.every
	}
	p.mu.Unlock()
}

// buckets cuts the run into at most n parts of equal completions; fewer when
// there were not as many moments of completion.
func (p *progress) buckets(n int) []Bucket {
	p.mu.Lock()
	defer p.mu.Unlock()
	marks := p.marks
	if len(marks) > 0 && marks[len(marks)-1].done < p.done {
		marks = append(slices.Clone(marks), mark{at: p.last, done: p.done})
	}
	return cut(marks, n)
}

// cut makes n buckets whose edges are marks, as equal as the marks allow.
func cut(marks []mark, n int) []Bucket {
	if len(marks) == 0 {
		return nil
	}
	total := marks[len(marks)-1].done
	var out []Bucket
	var from mark
	i := 0
	for b := 1; b <= n; b++ {
		want := (total*int64(b) + int64(n) - 1) / int64(n)
		for i < len(marks)-1 && marks[i].done < want {
			i++
		}
		if m := marks[i]; m.done > from.done {
			out = append(out, Bucket{StartNS: int64(from.at), EndNS: int64(m.at), Completions: m.done - from.done})
			from = m
		}
	}
	return out
}

// mergeProgress lays the buckets of several runs over each other.
func mergeProgress(parts []SeriesSummary, offset func(int) time.Duration) []Bucket {
	type edge struct {
		at   float64 // ns
		rate float64 // change of completions per ns
	}
	var edges []edge
	for i, p := range parts {
		for _, b := range p.Progress {
			from := float64(b.StartNS) + float64(offset(i))
			to := float64(b.EndNS) + float64(offset(i))
			to = max(to, from+1)
			r := float64(b.Completions) / (to - from)
			edges = append(edges, edge{from, r}, edge{to, -r})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	var total int64
	for _, p := range parts {
		for _, b := range p.Progress {
			total += b.Completions
		}
	}
	if total == 0 {
		return nil
	}
	var marks []mark
	var done, rate, at float64
	for _, e := range edges {
		// Between two edges completions grow evenly: leave marks along the way,
		// so that the cut doesn't depend on where the parts' edges lay.
		if span := e.at - at; span > 0 && rate > 0 {
			steps := int(rate*span/float64(total)*4*ProgressBuckets) + 1
			for k := 1; k <= steps; k++ {
				f := float64(k) / float64(steps)
				marks = append(marks, mark{at: time.Duration(at + span*f), done: int64(done + rate*span*f + 0.5)})
			}
			done += rate * span
		}
		at = e.at
		rate += e.rate
	}
	if len(marks) > 0 {
		marks[len(marks)-1].done = total
	}
	return cut(marks, ProgressBuckets)
}
