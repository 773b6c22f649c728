package suite

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/resources"
	"github.com/sse-soak/sse-soak/shard"
)

// A Machine is what the processes took during a stage, in percent of one core.
type Machine struct {
	Runners, Backend, Nginx float64
	Host                    float64 // all of the machine, other people's work with it
	RunDelay                float64 // seconds for which the runners' threads waited for a core, of each second
	Stall                   time.Duration
	Cores                   int  // 0: not known
	Shared                  bool // target and runners share the machine
	Short                   bool // the stage was too short for figures that are taken every second
}

// When the generator counts as the limit.
const (
	waitedShare  = 0.05 // its threads waited longer than this share of the time, and longer than they computed
	longestStall = 250 * time.Millisecond
	machineFull  = 0.9
	shortest     = 2.0 // seconds
)

// Limit says whether the generator was the limit of a stage.
type Limit string

// Of a stage that was over too soon nothing is known: the figures are taken once a second.
const (
	NoLimit      Limit = "–"
	LimitUnknown Limit = "not known"
	LimitIsOurs  Limit = "generator"
)

// Limit is whether the generator was the limit, and why.
func (m Machine) Limit() (limit Limit, why string) {
	if m.Short {
		return LimitUnknown, fmt.Sprintf("%.0f seconds are the least that tell whether the generator was the limit", shortest)
	}
	if why := m.GeneratorLimit(); why != "" {
		return LimitIsOurs, why
	}
	return NoLimit, ""
}

// GeneratorLimit says in a sentence why a slow stage may be the generator's own doing, "" if
// nothing speaks for it.
func (m Machine) GeneratorLimit() string {
	switch {
	case m.Stall > longestStall:
		return fmt.Sprintf("a runner stood still for %v", m.Stall.Round(time.Millisecond))
	case m.RunDelay > waitedShare && 100*m.RunDelay > m.Runners:
		return fmt.Sprintf("the runners waited %.1f s for a core in each second, and computed for %.1f s", m.RunDelay, m.Runners/100)
	case m.Shared && m.Cores > 0 && m.Host > 100*machineFull*float64(m.Cores) && m.Runners > m.Host/2:
		return fmt.Sprintf("the machine was full, and the runners took %.0f %% of a core of %.0f %%", m.Runners, m.Host)
	}
	return ""
}

// wakeUps is how often an answer wakes the generator up at most: the connection, the request, the
// answer's head, its body, the script.
const wakeUps = 5

// Added is the most that the generator itself can have added to the time of an answer, if that is
// known: each time it woke up no later than its stall probe ever did. A runner that is busy lets
// answers queue, and a full machine slows the service down as well: then nobody knows.
func (m Machine) Added() (most time.Duration, known bool) {
	cores := float64(max(m.Cores, 1))
	switch {
	case m.Short, m.Runners == 0, m.Runners/100+m.RunDelay > cores/2:
		return 0, false
	case m.Shared && (m.Host == 0 || m.Host > 100*machineFull*cores):
		return 0, false
	}
	return wakeUps * m.Stall, true
}

// machine is what was taken between two instants.
func (r *Run) machine(m *shard.Merged, from, to time.Time) Machine {
	out := Machine{Cores: r.Cores, Shared: r.OneHost, Short: to.Sub(from).Seconds() < shortest}
	if !to.After(from) {
		return out
	}
	for _, second := range seconds(m) {
		start, end := time.UnixMicro(second.FromUS), time.UnixMicro(second.ToUS)
		w := overlap(start, end, from, to)
		if w <= 0 {
			continue
		}
		part := w / end.Sub(start).Seconds() / to.Sub(from).Seconds()
		out.Runners += 100 * part * second.CPUSeconds
		out.RunDelay += part * float64(second.RunDelayMS) / 1000
		out.Stall = max(out.Stall, time.Duration(second.StallMS)*time.Millisecond)
	}
	out.Backend = r.percent(from, to, func(s resources.Sample) float64 { return s.BackendCPU })
	out.Nginx = r.percent(from, to, func(s resources.Sample) float64 { return s.NginxCPU })
	out.Host = r.percent(from, to, func(s resources.Sample) float64 { return s.BusySeconds })
	return out
}

// seconds are what the runners noted every second, or else the buckets of the series.
func seconds(m *shard.Merged) []shard.Second {
	if len(m.Seconds) > 0 {
		return m.Seconds
	}
	out := make([]shard.Second, 0, len(m.Series))
	for _, b := range m.Series {
		start := time.Unix(b.Unix, 0)
		out = append(out, shard.Second{
			FromUS: start.UnixMicro(), ToUS: start.Add(shard.BucketWidth).UnixMicro(), CPUSeconds: b.CPUPercent / 100 * shard.BucketWidth.Seconds(),
			RunDelayMS: b.RunDelayMS, StallMS: b.StallMS,
		})
	}
	return out
}

// percent is by how much a counter of CPU seconds grew between two instants, of one core.
func (r *Run) percent(from, to time.Time, value func(resources.Sample) float64) float64 {
	var grown, seconds float64
	if len(r.Samples) == 0 {
		return 0
	}
	before := r.Samples[0]
	for _, now := range r.Samples[1:] {
		width := float64(now.Unix - before.Unix)
		if width <= 0 {
			continue // within the same second: the next one has its share
		}
		w := overlap(time.Unix(before.Unix, 0), time.Unix(now.Unix, 0), from, to)
		if delta := value(now) - value(before); delta >= 0 { // one that falls is of a new process
			grown += delta * w / width
			seconds += w
		}
		before = now
	}
	if seconds == 0 {
		return 0
	}
	return 100 * grown / seconds
}

// overlap is how many seconds two spans have in common.
func overlap(aFrom, aTo, bFrom, bTo time.Time) float64 {
	from, to := aFrom, aTo
	if bFrom.After(from) {
		from = bFrom
	}
	if bTo.Before(to) {
		to = bTo
	}
	return max(to.Sub(from).Seconds(), 0)
}
