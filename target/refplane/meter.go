package refplane

import "time"

// meter times long work of a core on the wall clock: a bulk load of many keys.
//
// A real core of a data plane has a processor to itself. Here the operating
// system takes the core's thread off the processor whenever others want it, for
// milliseconds at a time, and a loop of some milliseconds on the wall clock then
// says how busy the machine is, not how far the storage is: own writes would be
// taken for remote ones. So a loop counts the processor time that its thread
// had, and on top of it the wall time that it waited for other cores to carry
// out what was handed to them, which is what makes a write remote. Where the
// system doesn't tell a thread's processor time, it is all wall time.
//
// A single write is timed on the wall clock: it is over before a thread is
// taken away, but for rare cases, and reading the processor time would take
// longer than the write.
type meter struct {
	on      bool // the work is under way and its thread's time is known
	cpu     time.Duration
	wall    time.Duration
	waiting time.Duration // for other cores, beyond the processor time meanwhile
}

// start begins the work.
func (m *meter) start(p *Plane) {
	*m = meter{}
	m.cpu, m.on = threadTime()
	m.wall = p.elapsed()
}

// end is the time that the work took, of one write or of many.
func (m *meter) end(p *Plane, many bool) time.Duration {
	wall := p.elapsed() - m.wall
	if !m.on {
		return wall
	}
	m.on = false
	cpu, ok := threadTime()
	if !ok || !many {
		return wall
	}
	// Never more than passed: the two clocks differ by their readings.
	return min(cpu-m.cpu+m.waiting, wall)
}

// pending is a wait that began.
type pending struct{ cpu, wall time.Duration }

// wait begins a wait for another core.
func (m *meter) wait(p *Plane) (w pending) {
	if m.on {
		w.cpu, _ = threadTime()
		w.wall = p.elapsed()
	}
	return w
}

// waited ends it. The processor time meanwhile (others' orders, going to sleep
// and waking) is counted with all processor time.
func (m *meter) waited(p *Plane, w pending) {
	if !m.on {
		return
	}
	cpu, _ := threadTime()
	m.waiting += max(0, p.elapsed()-w.wall-(cpu-w.cpu))
}
