package machine

import (
	"math"
	"runtime"
	"slices"
	"time"
)

// A Watch builds the record of a machine from successive readings. It is not safe for concurrent use.
type Watch struct {
	source   source
	record   Record
	steps    clockSteps
	maxSteal float64 // seconds; an increase of Steal between two readings adds a stretch only if it is larger
}

// New returns a Watch of the machine of this process. A message counts as late above lateThreshold. The record has the
// times of an increase of Steal only if the increase between two samples exceeds half of lateThreshold.
func New(lateThreshold time.Duration) *Watch { return newWatch(localSource, lateThreshold) }

func newWatch(s source, lateThreshold time.Duration) *Watch {
	w := &Watch{source: s, maxSteal: lateThreshold.Seconds() / 2}
	s.identify(&w.record)
	return w
}

// NewRemote returns a Watch of another machine. The caller passes the readings to Add.
func NewRemote(name string, lateThreshold time.Duration) *Watch {
	return &Watch{record: Record{Name: name}, maxSteal: lateThreshold.Seconds() / 2}
}

// Sample adds the current counters of this machine. It ignores changes of Suspension below SuspendedResolution, because
// they may be inaccuracies of the clocks.
func (w *Watch) Sample(now time.Time) {
	r := w.source.read()
	suspended, known := r[Suspension]
	switch before := w.record.Series(Suspension); {
	case before == nil && known:
		w.steps.started = false // earlier offsets include the time in suspension
	case before != nil && !known: // a step of the clock is unknown, too; the next complete sample detects it
		w.Add(now, r)
		return
	case before != nil && math.Abs(suspended-before.End) < SuspendedResolution.Seconds():
		r[Suspension] = before.End
	}
	r[ClockStep] = w.steps.add(w.source.clocks, seconds(r[Suspension]))
	w.Add(now, r)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

type clockSteps struct {
	started bool
	offset  time.Duration // wall clock minus monotonic clock and time in suspension
	sum     time.Duration
}

// minClockStep is the smallest detectable step. A clock that NTP slews changes by far less between two readings.
const minClockStep = 500 * time.Millisecond

// add adds the step since the previous call, if it is at least minClockStep, and returns the sum of all steps in
// seconds. The first call adds none.
func (c *clockSteps) add(clocks func() (wall, monotonic time.Duration), suspended time.Duration) float64 {
	wall, monotonic := clocks()
	offset := wall - monotonic - suspended
	if step := (offset - c.offset).Abs(); c.started && step >= minClockStep {
		c.sum += step
	}
	c.started, c.offset = true, offset
	return c.sum.Seconds()
}

// Add adds a reading. Readings must be added in order of time.
func (w *Watch) Add(now time.Time, r Reading) {
	at, before := now.UnixMicro(), w.record.ToUS
	if w.record.FromUS == 0 {
		w.record.FromUS, before = at, at
	}
	w.record.ToUS = max(at, before)
	for _, c := range Counters {
		v, ok := r[c.Name]
		if !ok {
			continue
		}
		s := w.record.Series(c.Name)
		if s == nil {
			w.record.Counters = append(w.record.Counters, Series{Name: c.Name, Begin: v, End: v})
			s = &w.record.Counters[len(w.record.Counters)-1]
		}
		if c.Limit != "" {
			s.recordShare(v, r[c.Limit], at)
			continue
		}
		increase := max(v-s.End, 0) // a value decreases if the machine restarts or a network card is removed
		s.End = v
		s.Increase += increase
		if c.hasTimes() && increase > 0 && (c.Name != Steal || increase > w.maxSteal) {
			s.addStretch(Stretch{before, w.record.ToUS, increase})
		}
	}
}

// recordShare records the value v of a gauge at a time in Unix microseconds, and its highest share of limit.
func (s *Series) recordShare(v, limit float64, at int64) {
	s.End = v
	if limit > 0 && v/limit > s.MaxShare {
		s.MaxShare, s.MaxShareUS = v/limit, at
	}
}

// addStretch adds a stretch, or extends the last one if that ends where the new one starts. If there are too many
// stretches, it merges the two neighbors that together span the shortest time. Merged stretches therefore remain short.
func (s *Series) addStretch(stretch Stretch) {
	n := len(s.Stretches)
	if n > 0 && s.Stretches[n-1].ToUS == stretch.FromUS {
		s.Stretches[n-1].ToUS, s.Stretches[n-1].Increase = stretch.ToUS, s.Stretches[n-1].Increase+stretch.Increase
		return
	}
	if s.Stretches = append(s.Stretches, stretch); n < maxStretches {
		return
	}
	shortest := 1 // index of the second stretch of the pair
	for i := 2; i < len(s.Stretches); i++ {
		if s.Stretches[i].ToUS-s.Stretches[i-1].FromUS < s.Stretches[shortest].ToUS-s.Stretches[shortest-1].FromUS {
			shortest = i
		}
	}
	first, second := &s.Stretches[shortest-1], s.Stretches[shortest]
	first.ToUS, first.Increase = second.ToUS, first.Increase+second.Increase
	s.Stretches = slices.Delete(s.Stretches, shortest, shortest+1)
}

// AddNotice adds a notice of AWS, unless it is a duplicate or the record has the maximum number of notices.
func (w *Watch) AddNotice(n Notice) {
	known := slices.ContainsFunc(w.record.Notices, func(other Notice) bool { return other.Name == n.Name && other.AtUS == n.AtUS })
	if !known && len(w.record.Notices) < maxNotices {
		w.record.Notices = append(w.record.Notices, n)
	}
}

// Record returns a copy of the record so far. If it has no counters except ClockStep, Unknown has the reason.
func (w *Watch) Record() *Record {
	r := w.record
	r.Counters, r.Notices = slices.Clone(r.Counters), slices.Clone(r.Notices)
	for i := range r.Counters {
		r.Counters[i].Stretches = slices.Clone(r.Counters[i].Stretches)
	}
	if !slices.ContainsFunc(r.Counters, func(s Series) bool { return s.Name != ClockStep }) {
		r.Unknown = "no counters: they need Linux and a readable /proc; this machine runs " + runtime.GOOS
	}
	return &r
}
