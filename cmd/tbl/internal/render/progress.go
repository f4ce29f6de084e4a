package render

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Snapshot is the state of a run at one moment.
type Snapshot struct {
	Done, Total int64 // requests; Total 0: not known
	Errors      int64
	// Scheduled is how many requests of an open loop were due; 0: none, or no
	// schedule.
	Scheduled    int64
	Heard, Cores int64 // Cores 0: not known yet
	Missing      string
	Label        string // what is being done
}

// plainEvery is the time between two lines where no terminal shows a bar.
const plainEvery = 2 * time.Second

// Progress shows a run's progress on w until stop is called: a bar when w is
// a terminal, else a line about every two seconds. poll is called from
// another goroutine.
func Progress(w io.Writer, poll func() Snapshot) (stop func()) {
	start := time.Now()
	end, ended := make(chan struct{}), make(chan struct{})
	file, ok := w.(*os.File)
	tty := ok && term.IsTerminal(int(file.Fd()))
	go func() {
		defer close(ended)
		if tty {
			bar(file, start, poll, end)
		} else {
			lines(w, start, poll, end)
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

func lines(w io.Writer, start time.Time, poll func() Snapshot, end <-chan struct{}) {
	tick := time.NewTicker(plainEvery)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return
		case <-tick.C:
			fmt.Fprintln(w, poll().line(time.Since(start)))
		}
	}
}

// line is the plain form: completed=… rate=…/s coverage=4/4 missing=[] errors=0.
func (s Snapshot) line(elapsed time.Duration) string {
	done := Int(s.Done)
	if s.Total > 0 {
		done = fmt.Sprintf("%s/%s (%.1f%%)", done, Int(s.Total), 100*float64(s.Done)/float64(s.Total))
	}
	cover := "-"
	if s.Cores > 0 {
		cover = fmt.Sprintf("%d/%d", s.Heard, s.Cores)
	}
	out := fmt.Sprintf("completed=%s rate=%s coverage=%s missing=[%s] errors=%s",
		done, Rate(float64(s.Done)/elapsed.Seconds()), cover, s.Missing, Int(s.Errors))
	if s.Label != "" {
		out = s.Label + ": " + out
	}
	return out
}

func bar(f *os.File, start time.Time, poll func() Snapshot, end <-chan struct{}) {
	total := poll().Total
	if total == 0 {
		total = -1
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 40 {
		width = 80
	}
	b := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(f),
		progressbar.OptionSetWidth(max(10, width-72)),
		progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(total > 0),
	)
	// An unfinished bar of unknown length would leave a goroutine behind.
	defer b.Finish()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return
		case <-tick.C:
			s := poll()
			if s.Total == 0 {
				s.Total = -1
			}
			if s.Total != total { // of the next step
				total = s.Total
				b.Set64(0)
				b.ChangeMax64(total)
			}
			b.Describe(fmt.Sprintf("%s %s %d/%d errors=%d", s.Label, Rate(float64(s.Done)/time.Since(start).Seconds()), s.Heard, s.Cores, s.Errors))
			if total < 0 || s.Done < total {
				// At its maximum the bar would finish itself.
				b.Set64(s.Done)
			}
		}
	}
}

// Count is "1 name", "1,000 names".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return Int(int64(n)) + " " + what
}
