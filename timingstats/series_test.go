package timingstats

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestSeriesPoints(t *testing.T) {
	var s Series
	a, b := CoreID{Core: 0}, CoreID{Core: 1}
	s.Done(a, 0, time.Millisecond, 1)
	s.Done(a, 999*time.Millisecond, 3*time.Millisecond, 1)
	s.Done(b, time.Second, 2*time.Millisecond, 10)
	s.Done(a, 950*time.Millisecond, 9*time.Millisecond, 1) // handed in late
	s.Failed(1500 * time.Millisecond)
	s.FailedOn(b, 3*time.Second)
	out := s.Summary(5 * time.Second)
	if !slices.Equal(out.StartS, []int64{0, 1, 2, 3, 4}) {
		t.Fatalf("starts %v", out.StartS)
	}
	if !slices.Equal(out.All.Completions, []int64{3, 10, 0, 0, 0}) || !slices.Equal(out.All.Errors, []int64{0, 1, 0, 1, 0}) {
		t.Errorf("all %+v", out.All)
	}
	if !slices.Equal(out.Cores[b].Errors, []int64{0, 0, 0, 1, 0}) || !slices.Equal(out.Cores[b].Completions, []int64{0, 10, 0, 0, 0}) {
		t.Errorf("core 1 %+v", out.Cores[b])
	}
	if out.Cores[a].Errors != nil {
		t.Errorf("core 0 has errors %v", out.Cores[a].Errors)
	}
	for i, want := range []float64{9e6, 2e6, 0, 0, 0} {
		if got := float64(out.All.P99NS[i]); got < want || got > want*1.033 {
			t.Errorf("p99 of point %d is %v, want %v", i, got, want)
		}
	}
	if s.Completions() != 13 {
		t.Errorf("%d completions", s.Completions())
	}
}

func TestSeriesThins(t *testing.T) {
	var s Series
	end := 30 * time.Minute
	for at := time.Duration(0); at < end; at += 500 * time.Millisecond {
		s.Done(CoreID{}, at, time.Millisecond, 1)
	}
	out := s.Summary(end)
	if want := 600 + 20*60/10; len(out.StartS) != want || len(out.All.Completions) != want || len(out.Cores[CoreID{}].P99NS) != want {
		t.Fatalf("%d points, want %d", len(out.StartS), want)
	}
	if out.StartS[599] != 599 || out.StartS[600] != 600 || out.StartS[601] != 610 {
		t.Errorf("starts %v", out.StartS[598:603])
	}
	var sum int64
	for i, c := range out.All.Completions {
		sum += c
		if want := int64(2); i < 600 && c != want || i >= 600 && c != 20 {
			t.Fatalf("point %d has %d completions", i, c)
		}
	}
	if sum != int64(end/(500*time.Millisecond)) {
		t.Errorf("%d completions in all", sum)
	}
}

// A file of an hour on 256 cores stays under 5 MB: the series' part of it.
func TestSeriesSizeOfAnHour(t *testing.T) {
	var s Series
	rng := rand.New(rand.NewPCG(1, 1))
	for sec := range 3600 {
		at := time.Duration(sec) * time.Second
		for core := range 256 {
			s.Done(CoreID{Core: core}, at, time.Duration(rng.IntN(5e6)), 80+rng.Int64N(20))
		}
	}
	b, err := json.Marshal(s.Summary(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(b))
	if len(b) > 4_000_000 {
		t.Errorf("%d bytes", len(b))
	}
}

func TestProgressBuckets(t *testing.T) {
	for name, n := range map[string]int{"few": 100, "remembered one by one": maxMarks, "thinned": 1_000_000} {
		var s Series
		// The rate falls: completion i happens at the moment ~ i².
		at := func(i int) time.Duration { return time.Duration(float64(i) * float64(i) * 10) }
		for i := 1; i <= n; i++ {
			s.Done(CoreID{}, at(i), time.Millisecond, 1)
		}
		bs := s.Summary(at(n)).Progress
		if len(bs) != ProgressBuckets {
			t.Fatalf("%s: %d buckets", name, len(bs))
		}
		var sum, last int64
		for i, b := range bs {
			if b.StartNS != last || b.EndNS <= b.StartNS {
				t.Fatalf("%s: bucket %d is %+v after %d", name, i, b, last)
			}
			sum, last = sum+b.Completions, b.EndNS
			if want := int64(at(int(sum))); b.EndNS != want {
				t.Errorf("%s: bucket %d ends at %d, its last completion was at %d", name, i, b.EndNS, want)
			}
			if f := float64(b.Completions) * ProgressBuckets / float64(n); f < 0.97 || f > 1.03 {
				t.Errorf("%s: bucket %d has %.3f of its share", name, i, f)
			}
		}
		if sum != int64(n) || last != int64(at(n)) {
			t.Errorf("%s: %d completions until %d", name, sum, last)
		}
	}
}

func TestProgressOfLumps(t *testing.T) {
	var s Series
	for i := range 7 {
		s.Done(CoreID{}, time.Duration(i+1)*time.Second, time.Second, 15_625)
	}
	bs := s.Summary(7 * time.Second).Progress
	if len(bs) != 7 || bs[6].Completions != 15_625 {
		t.Errorf("%v", bs)
	}
	var empty Series
	if out := empty.Summary(0); len(out.Progress) != 0 || len(out.StartS) != 0 {
		t.Errorf("an empty series has %+v", out)
	}
}

func TestSeriesConcurrent(t *testing.T) {
	var s Series
	var wg sync.WaitGroup
	const workers, each = 4, 20_000
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				at := time.Duration(i) * time.Millisecond
				if i%100 == 99 {
					s.Failed(at)
					continue
				}
				s.Done(CoreID{Core: (i + w) % 8}, at, time.Millisecond, 1)
			}
		})
	}
	wg.Wait()
	out := s.Summary(20 * time.Second)
	var all, errs, cores int64
	for i := range out.StartS {
		all += out.All.Completions[i]
		errs += out.All.Errors[i]
		for _, c := range out.Cores {
			cores += c.Completions[i]
		}
	}
	if all != workers*each*99/100 || errs != workers*each/100 || cores != all {
		t.Errorf("%d completions, %d on cores, %d errors", all, cores, errs)
	}
}

func TestMergeSeries(t *testing.T) {
	var whole Series
	parts := make([]Series, 4)
	end := 700 * time.Second
	for i := 0; i < 70_000; i++ {
		at := time.Duration(i) * 10 * time.Millisecond
		core := CoreID{Core: i % 3}
		whole.Done(core, at, time.Duration(i), 1)
		parts[i%4].Done(core, at, time.Duration(i), 1)
		if i%50 == 0 {
			whole.Failed(at)
			parts[i%4].Failed(at)
		}
	}
	var sums []SeriesSummary
	for i := range parts {
		sums = append(sums, parts[i].Summary(end))
	}
	got, want := MergeSeries(sums, nil), whole.Summary(end)
	if !slices.Equal(got.StartS, want.StartS) || !slices.Equal(got.All.Completions, want.All.Completions) || !slices.Equal(got.All.Errors, want.All.Errors) {
		t.Error("merged points differ from those of the whole")
	}
	for id, c := range want.Cores {
		if !slices.Equal(got.Cores[id].Completions, c.Completions) {
			t.Errorf("core %v differs", id)
		}
		for i := range c.P99NS {
			if got.Cores[id].P99NS[i] < c.P99NS[i] {
				t.Fatalf("core %v point %d: merged p99 %d is under the whole's %d", id, i, got.Cores[id].P99NS[i], c.P99NS[i])
			}
		}
	}
	var n int64
	for i, b := range got.Progress {
		n += b.Completions
		if r := b.RatePerS(); r < 97 || r > 103 {
			t.Errorf("bucket %d has %.1f/s, want 100", i, r)
		}
	}
	if n != 70_000 {
		t.Errorf("%d completions in the merged progress", n)
	}
}

func TestMergeSeriesShifted(t *testing.T) {
	var a, b Series
	a.Done(CoreID{}, 0, 1, 5)
	b.Done(CoreID{}, 0, 1, 7)
	out := MergeSeries([]SeriesSummary{a.Summary(time.Second), b.Summary(time.Second)}, []time.Duration{0, 2100 * time.Millisecond})
	if !slices.Equal(out.All.Completions, []int64{5, 0, 7}) || out.EndNS != int64(3100*time.Millisecond) {
		t.Errorf("%+v", out)
	}
}

func TestSeriesAllocatesNothing(t *testing.T) {
	var s Series
	for i := range 100_000 {
		s.Done(CoreID{Core: i % 4}, time.Duration(i)*time.Millisecond, time.Duration(i%1000)*time.Microsecond, 1)
	}
	i := 0
	n := testing.AllocsPerRun(1000, func() {
		s.Done(CoreID{Core: i % 4}, 99*time.Second+time.Duration(i)*time.Microsecond, time.Duration(i%1000)*time.Microsecond, 1)
		i++
	})
	if n != 0 {
		t.Errorf("%v allocations per completion", n)
	}
}

func BenchmarkSeries(b *testing.B) {
	var s Series
	b.ReportAllocs()
	for i := range b.N {
		s.Done(CoreID{Core: i & 3}, time.Duration(i)*40*time.Microsecond, time.Millisecond, 1)
	}
}
