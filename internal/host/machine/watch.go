package machine

import (
	"math"
	"runtime"
	"slices"
	"time"
)

// A Watch builds the record of a machine from successive readings. It is not safe for concurrent use.
type Watch struct {
	source       source
	record       Record
	last         Reading
	steps        clockSteps
	stealSeconds float64 // Steal between two readings, in seconds, above which a stretch is recorded
}

// New returns a Watch of the machine of this process. A message counts as late if its lateness exceeds late. The record has
// the times at which Steal increased by more than half of late between two samples.
func New(late time.Duration) *Watch { return newWatch(localSource, late) }

func newWatch(s source, late time.Duration) *Watch {
	w := &Watch{source: s, stealSeconds: late.Seconds() / 2}
	s.identity(&w.record)
	return w
}

// Follow returns a Watch of another machine. Its caller passes the readings to Add.
func Follow(name string, late time.Duration) *Watch {
	return &Watch{record: Record{Name: name}, stealSeconds: late.Seconds() / 2}
}

// Sample reads the counters.
func (w *Watch) Sample(now time.Time) {
	r := w.source.read()
	if before := w.record.Series(Suspension); before != nil && math.Abs(r[Suspension]-before.End) < SuspendedResolution.Seconds() {
		r[Suspension] = before.End
	}
	r[ClockStep] = w.steps.add(w.source.clocks, seconds(r[Suspension]))
	w.Add(now, r)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// A clockSteps sums up the steps of the wall clock. A clock that NTP slews changes by far less between two readings.
type clockSteps struct {
	started bool
	offset  time.Duration // wall clock minus monotonic clock and time in suspension
	sum     time.Duration
}

// minClockStep is the smallest detectable step.
const minClockStep = 500 * time.Millisecond

// add reads the clocks, and returns the sum in seconds.
func (c *clockSteps) add(clocks func() (wall, monotonic time.Duration), suspended time.Duration) float64 {
	wall, monotonic := clocks()
	offset := wall - monotonic - suspended
	if step := (offset - c.offset).Abs(); c.started && step >= minClockStep {
		c.sum += step
	}
	c.started, c.offset = true, offset
	return c.sum.Seconds()
}

// Add adds a reading, which must be later than the previous one.
func (w *Watch) Add(now time.Time, r Reading) {
	at, before := now.UnixMicro(), w.record.ToUS
	if w.last == nil {
		w.record.FromUS, before = at, at
	}
	w.last = r
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
		increase := v - s.End
		if increase < 0 { // a reset: the machine restarted, or a network card was removed
			increase = 0
		}
		s.End = v
		s.Increase += increase
		if minimum := map[string]float64{Steal: w.stealSeconds}[c.Name]; c.hasTimes() && increase > minimum {
			s.addStretch(Stretch{before, w.record.ToUS, increase})
		}
	}
}

// recordShare records the highest share of a limit.
func (s *Series) recordShare(v, limit float64, at int64) {
	s.End = v
	if limit > 0 && v/limit > s.MaxShare {
		s.MaxShare, s.MaxShareUS = v/limit, at
	}
}

// addStretch adds a stretch, or extends the last one if it ends where the new one starts. If there are too many stretches, it merges the
// two whose union is the shortest, so that no stretch contains a long time without an increase.
func (s *Series) addStretch(m Stretch) {
	n := len(s.Stretches)
	if n > 0 && s.Stretches[n-1].ToUS == m.FromUS {
		s.Stretches[n-1].ToUS, s.Stretches[n-1].By = m.ToUS, s.Stretches[n-1].By+m.By
		return
	}
	if s.Stretches = append(s.Stretches, m); n < maxStretches {
		return
	}
	at := 1
	for i := range s.Stretches {
		if i > 0 && s.Stretches[i].ToUS-s.Stretches[i-1].FromUS < s.Stretches[at].ToUS-s.Stretches[at-1].FromUS {
			at = i
		}
	}
	s.Stretches[at-1].ToUS, s.Stretches[at-1].By = s.Stretches[at].ToUS, s.Stretches[at-1].By+s.Stretches[at].By
	s.Stretches = slices.Delete(s.Stretches, at, at+1)
}

// Notice adds a notice of AWS, unless it is a duplicate.
func (w *Watch) Notice(n Notice) {
	known := slices.ContainsFunc(w.record.Notices, func(have Notice) bool { return have.Name == n.Name && have.AtUS == n.AtUS })
	if !known && len(w.record.Notices) < maxNotices {
		w.record.Notices = append(w.record.Notices, n)
	}
}

// Record returns a copy of the record so far.
func (w *Watch) Record() *Record {
	r := w.record
	r.Counters, r.Notices = slices.Clone(r.Counters), slices.Clone(r.Notices)
	for i := range r.Counters {
		r.Counters[i].Stretches = slices.Clone(r.Counters[i].Stretches)
	}
	if !slices.ContainsFunc(r.Counters, func(s Series) bool { return s.Name != ClockStep }) {
		r.Unknown = "no counters, because they need Linux, and this machine runs " + runtime.GOOS
	}
	return &r
}
