package logparse_test

import (
	"os"
	"testing"

	"tbl/logparse"
	"tbl/logparse/input"
	"tbl/logparse/logline"
	"tbl/timingstats"
)

// perCore is a collector as a report needs it.
type perCore struct {
	dense [256]*timingstats.CoreRecorder
	n     int64
}

func (p *perCore) Add(l *logline.Line) {
	r := p.dense[l.Core&255]
	if r == nil {
		r = &timingstats.CoreRecorder{}
		p.dense[l.Core&255] = r
	}
	tag := timingstats.Slow
	if l.Fast {
		tag = timingstats.Fast
	}
	r.Add(l.Clicks, tag, l.Rate)
	p.n++
}

func (p *perCore) Merge(o logparse.SampleCollector) {
	q := o.(*perCore)
	for i, r := range q.dense {
		switch {
		case r == nil:
		case p.dense[i] == nil:
			p.dense[i], q.dense[i] = r, nil
		default:
			p.dense[i].Merge(r)
		}
	}
	p.n += q.n
}

func (p *perCore) Reset() { *p = perCore{} }

// BenchmarkScan reads the file that TBL_BENCH_LOG names; scripts/genlog makes one.
func BenchmarkScan(b *testing.B) {
	path := os.Getenv("TBL_BENCH_LOG")
	if path == "" {
		b.Skip("TBL_BENCH_LOG names no log")
	}
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	b.ReportAllocs()
	for b.Loop() {
		opt := options()
		opt.NewSamples = func() logparse.SampleCollector { return &perCore{} }
		r, err := logparse.Scan(b.Context(), []input.Input{input.File(path)}, opt)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Counts.Samples), "samples")
	}
}
