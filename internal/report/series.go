package report

import (
	"math"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A series has the samples of a run on one time axis, with one point per step. NaN marks an unknown value, and an
// unknown column is nil. A point represents the step that ends there: the value at its end, or the count during it.
type series struct {
	from int64 // Unix, seconds
	step int64 // seconds
	n    int   // number of points

	open, noops                                     []float64
	p50, p99, max                                   []float64 // lateness, ms
	runnerRSS, runnerLive                           []float64 // MiB
	runnerCPU, runnerFiles, runnerGo                []float64 // CPU in percent of a core
	runnerGC, runDelay, stall                       []float64 // ms
	backendRSS, backendCPU, backendFiles, backendGo []float64 // MiB, percent of a core
	backendGC                                       []float64 // ms of pauses in a step
	streams                                         []float64 // open on the backend
	nginxRSS, nginxCPU, nginxFiles                  []float64 // MiB, percent of a core
	hostCPU, available                              []float64 // percent of all cores, MiB
	retransmits, overflows, drops                   []float64 // in a step
	runnerThreads, backendThreads, nginxThreads     []float64
	received, transmitted                           []float64 // MiB/s
	lookups                                         []float64 // ms

	rows [][]int64 // numbers of messages by point, then by lateness (see heatRows)
}

func newSeries(m *shard.Merged, samples []resources.Sample, cores int) *series {
	buckets, width := m.Timeline()
	step := int64(width / time.Second)
	s := &series{step: step}
	var from, to int64 = math.MaxInt64, 0
	extend := func(first, last int64) { from, to = min(from, first/step*step), max(to, last/step*step) }
	for _, b := range buckets {
		extend(b.Unix, b.Unix+step)
	}
	if len(buckets) == 0 {
		for _, r := range samples {
			extend(r.Unix, r.Unix)
		}
	}
	if to == 0 {
		return s
	}
	from, to = s.trimAxis(from, to, buckets, samples)
	s.from, s.n = from, int((to-from)/step)+1
	s.addClients(buckets)
	s.addRunners(buckets)
	s.addSamples(samples)
	s.addRates(samples, cores)
	return s
}

// trimAxis limits the axis to times near the median of the data. A runner whose clock is at 1970 would make the axis
// half a century long. Such a run is invalid, and the verdict has the reason.
func (s *series) trimAxis(from, to int64, buckets []shard.Bucket, samples []resources.Sample) (int64, int64) {
	const stepsPerBucket, minSeconds = 10, 24 * 3600
	n, middle := len(buckets), from
	if n > 0 {
		middle = buckets[n/2].Unix / s.step * s.step
	} else if n = len(samples); n > 0 {
		middle = samples[n/2].Unix / s.step * s.step
	}
	radius := max(stepsPerBucket*int64(n)*s.step, minSeconds)
	return max(from, middle-radius), min(to, middle+radius)
}

// set sets the point nearest to a Unix time, unless the value is NaN or the time is outside the axis.
func (s *series) set(column *[]float64, unix int64, value float64) {
	i := s.nearest(unix)
	if unix < s.from || i >= int64(s.n) || math.IsNaN(value) {
		return
	}
	if *column == nil {
		*column = slices.Repeat([]float64{math.NaN()}, s.n)
	}
	(*column)[i] = value
}

// nearest returns the point nearest to a Unix time, which may be outside the axis.
func (s *series) nearest(unix int64) int64 { return (unix - s.from + s.step/2) / s.step }

func (s *series) addClients(buckets []shard.Bucket) {
	for _, b := range buckets {
		put := func(column *[]float64, value float64) { s.set(column, b.Unix+s.step, value) }
		put(&s.open, float64(b.Open))
		put(&s.noops, float64(b.Noops))
		h := lateness(b)
		if h == nil {
			continue
		}
		put(&s.p50, format.InMilliseconds(h.Quantile(.5)))
		put(&s.p99, format.InMilliseconds(h.Quantile(.99)))
		put(&s.max, format.InMilliseconds(h.Max()))
		if s.rows == nil {
			s.rows = make([][]int64, s.n)
		}
		if i := (b.Unix-s.from)/s.step + 1; b.Unix >= s.from && i < int64(s.n) {
			s.rows[i] = h.CountBy(heatRows)
		}
	}
}

func (s *series) addRunners(buckets []shard.Bucket) {
	for _, b := range buckets {
		if b.RSS == 0 {
			continue
		}
		put := func(column *[]float64, value float64) { s.set(column, b.Unix+s.step, value) }
		put(&s.runnerRSS, mib(b.RSS))
		put(&s.runnerLive, orNaN(mib(b.HeapLive)))
		put(&s.runnerCPU, b.CPUPercent)
		put(&s.runnerGo, float64(b.Goroutines))
		put(&s.runnerGC, float64(b.GCPauseUS)/1000)
		put(&s.runDelay, float64(b.RunDelayMS))
		put(&s.stall, float64(b.StallMS))
		put(&s.runnerFiles, orNaN(float64(b.Files)))
		put(&s.runnerThreads, orNaN(float64(b.Threads)))
	}
}

// lateness returns the lateness of a bucket, or nil if no message arrived or the histogram is invalid.
func lateness(b shard.Bucket) *shard.Histogram {
	if b.Lateness == nil {
		return nil
	}
	h, err := b.Lateness.Unpack()
	if err != nil {
		return nil // the merge has recorded the problem
	}
	return h
}

func (s *series) addSamples(samples []resources.Sample) {
	for _, sample := range samples {
		put := func(column *[]float64, value float64) { s.set(column, sample.Unix, value) }
		if sample.BackendRSS > 0 {
			put(&s.backendRSS, mib(sample.BackendRSS))
			put(&s.backendFiles, float64(sample.Files))
			put(&s.backendGo, float64(sample.Goroutines))
			put(&s.streams, float64(sample.Streams))
		}
		put(&s.nginxRSS, orNaN(mib(sample.NginxRSS)))
		put(&s.nginxFiles, orNaN(float64(sample.NginxFiles)))
		put(&s.available, orNaN(mib(sample.Available)))
		put(&s.backendThreads, orNaN(float64(sample.BackendThreads)))
		put(&s.nginxThreads, orNaN(float64(sample.NginxThreads)))
		put(&s.lookups, orNaN(sample.LookupMS))
	}
}

// addRates sets the rates between the last samples of consecutive points, because samples may be closer to each other
// than points. A counter that decreased belongs to a new process and yields no rate.
func (s *series) addRates(samples []resources.Sample, cores int) {
	latest := 0
	for i := 1; i < len(samples); i++ {
		if i+1 < len(samples) && s.nearest(samples[i+1].Unix) == s.nearest(samples[i].Unix) {
			continue
		}
		previous, current := samples[latest], samples[i]
		latest = i
		elapsed := float64(current.Unix - previous.Unix)
		if elapsed <= 0 {
			continue
		}
		put := func(column *[]float64, known bool, first, last, per float64) {
			if known && last >= first {
				s.set(column, current.Unix, (last-first)*per)
			}
		}
		put(&s.backendCPU, previous.BackendCPU > 0, previous.BackendCPU, current.BackendCPU, 100/elapsed)
		put(&s.nginxCPU, previous.NginxCPU > 0, previous.NginxCPU, current.NginxCPU, 100/elapsed)
		put(&s.hostCPU, previous.BusySeconds > 0, previous.BusySeconds, current.BusySeconds, 100/elapsed/float64(max(cores, 1)))
		put(&s.backendGC, previous.BackendGCSeconds > 0, previous.BackendGCSeconds, current.BackendGCSeconds, 1000)
		put(&s.received, previous.Received > 0, mib(previous.Received), mib(current.Received), 1/elapsed)
		put(&s.transmitted, previous.Transmitted > 0, mib(previous.Transmitted), mib(current.Transmitted), 1/elapsed)
		network := previous.NetworkKnown && current.NetworkKnown
		put(&s.retransmits, network, float64(previous.Retransmits), float64(current.Retransmits), 1)
		put(&s.overflows, network, float64(previous.Overflows), float64(current.Overflows), 1)
		put(&s.drops, network, float64(previous.Drops), float64(current.Drops), 1)
	}
}

// orNaN returns NaN for 0, which means that the value is unknown.
func orNaN(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

func (s *series) timeAt(i int) float64 { return float64(s.from + int64(i)*s.step) }

// index returns the point at or before a Unix time, within the axis.
func (s *series) index(unix float64) int {
	return int(min(max((unix-float64(s.from))/float64(s.step), 0), float64(s.n-1)))
}

func numbersOf(column []float64, from, to int) []float64 {
	if column == nil || from >= to {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(column[from:to]), math.IsNaN)
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// phases has the times of the phases of a soak, in Unix seconds: streams connect from start to open, stay open until
// ending, and disconnect from ending to end.
type phases struct{ start, open, ending, end float64 }

func phasesOf(m *shard.Merged, v *verdict.Verdict) phases {
	p := phases{start: v.StartedUnix, open: v.StartedUnix, ending: v.EndedUnix, end: v.EndedUnix}
	seconds := func(c *shard.Connection, at ledger.Instant) float64 {
		return format.Unix(m.Runners[c.Runner].At(at))
	}
	for _, c := range v.Records() {
		if c.Streams > 0 && m.Runners[c.Runner].StartDelay() == 0 { // a replacement runner opens its streams during the hold phase
			p.open = max(p.open, seconds(c, c.OpenedAt))
		}
		if c.State == ledger.Completed {
			p.ending = min(p.ending, seconds(c, c.ClosedAt))
		}
	}
	p.open = min(p.open, p.ending)
	return p
}

func (p phases) bands() []Band {
	return []Band{
		{Name: "connect", From: p.start, To: p.open},
		{Name: "hold", From: p.open, To: p.ending},
		{Name: "disconnect", From: p.ending, To: p.end},
	}
}

// holdRange returns the range of points inside the hold phase, without its edges.
func (p phases) holdRange(s *series) (from, to int) {
	if s.n == 0 {
		return 0, 0
	}
	return min(s.index(p.open)+2, s.n), s.index(p.ending) + 1
}
