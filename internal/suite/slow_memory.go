package suite

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// memory is that of the service while clients are slow, in MiB.
type memory struct {
	known       bool // it was seen before, after, and most of the time meanwhile
	counter     bool // it never falls
	before      float64
	peak, after float64 // by how much more
	at          []reading
}

// memoryWhile reads the samples. They are a second wide: a reading is noted when its second is over.
func (r *Run) memoryWhile(gauge string, began time.Time, lasts time.Duration) (out memory) {
	before, after := false, false
	seen, unseen := 0, 0 // meanwhile: a service that is about to fall over may not say how much memory it has
	for _, s := range r.Samples {
		v, ok := memoryOf(s, gauge)
		at := time.Unix(s.Unix+1, 0).Sub(began)
		switch {
		case !ok:
			if at > 0 && at <= lasts {
				unseen++
			}
			continue
		case at <= 0:
			out.before, before = v, true
			continue
		case at <= lasts:
			seen++
		default:
			after = true
		}
		out.peak, out.after = max(out.peak, v-out.before), v-out.before
		out.at = append(out.at, reading{at, v})
	}
	out.counter = r.watchesCounter()
	out.known = before && after && seen > unseen && !out.counter
	return out
}

// memoryOf is the memory in a sample in MiB, that of our own backend and nginx where no gauge was named.
func memoryOf(s resources.Sample, gauge string) (mib float64, ok bool) {
	switch {
	case gauge == "":
		return float64(s.BackendRSS+s.NginxRSS) / (1 << 20), s.BackendRSS > 0
	case s.Gauge == nil:
		return 0, false
	}
	return *s.Gauge / (1 << 20), true
}

func (m *memory) String() string {
	if !m.known {
		return "not known"
	}
	return fmt.Sprintf("%.0f MiB before, %+.0f MiB at most, %+.0f MiB in the end", m.before, m.peak, m.after)
}

// growth judges the memory, where a setting limits it.
func (s *slowness) growth(r *Run) []verdict.Check {
	limit := r.number("MAX_GROWTH")
	if limit < 0 {
		return nil
	}
	c := verdict.Check{
		ID: CheckMemory, Name: "memory grew by", Limit: fmt.Sprintf("at most %.0f MiB", limit), Actual: fmt.Sprintf("%.1f MiB", s.memory.peak), Pass: s.memory.known && s.memory.peak <= limit,
		Why: "a few clients that do not read must not bring the service down",
	}
	switch {
	case s.memory.counter:
		c.Actual, c.Reasons = "not known", []string{noCounter(r.Rounds[0].Suite.Parameters["GAUGE"], "the service's memory, such as process_resident_memory_bytes")}
		return []verdict.Check{c.InDoubt()}
	case !s.memory.known:
		c.Actual = "not known"
		c.Reasons = []string{"the service's memory was not seen before, after, and most of the time while clients were slow: name it by GAUGE, such as process_resident_memory_bytes, or let it be with MAX_GROWTH=-1"}
		return []verdict.Check{c.InDoubt()}
	case !c.Pass:
		c.Reasons = []string{fmt.Sprintf("the service's memory grew by %.1f MiB while clients did not read, and %.0f MiB is the limit (MAX_GROWTH); in the end it was %+.1f MiB", s.memory.peak, limit, s.memory.after)}
	}
	return []verdict.Check{c}
}

// table has a reading of each stretch, the last one always.
func (m *memory) table() verdict.Table {
	t := verdict.Table{Title: "The service's memory", Note: "in MiB; seconds from when clients were slow", Columns: []string{"seconds after", "memory"}}
	if !m.known {
		return t
	}
	t.Add("before", fmt.Sprintf("%.1f", m.before))
	step := (len(m.at) + mostReadings - 1) / mostReadings
	for i, r := range m.at {
		if i%step == step-1 || i == len(m.at)-1 {
			t.Add(fmt.Sprintf("%.1f", r.after.Seconds()), fmt.Sprintf("%.1f", r.value))
		}
	}
	return t
}

// closedAfter is after how long our own backend has so many streams fewer than before; 0 where it never has, or is another.
func (r *Run) closedAfter(began time.Time, n int) time.Duration {
	before := 0
	for _, s := range r.Samples {
		at := time.Unix(s.Unix+1, 0).Sub(began)
		switch {
		case s.BackendRSS == 0:
		case at <= 0:
			before = s.Streams
		case n > 0 && s.Streams <= before-n:
			return at
		}
	}
	return 0
}
