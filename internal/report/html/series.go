package html

import (
	"math"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

const step = int64(shard.BucketWidth / time.Second)

// series are the figures of a run on one time axis, a point each step; NaN is not known. A point
// tells of the step that ends there: what was so then, or what happened in it.
type series struct {
	from int64
	n    int

	open, opened, closed, noops, late, faults       []float64
	p50, p99, max                                   []float64 // lateness, ms
	runnerRSS, runnerLive                           []float64 // MiB
	runnerCPU, runnerFiles, runnerGo                []float64 // percent of a core
	runnerGC, runDelay, stall                       []float64 // ms
	backendRSS, backendCPU, backendFiles, backendGo []float64
	backendGC, backendGCs                           []float64 // ms and number of pauses in a step
	streams                                         []float64
	nginxRSS, nginxCPU, nginxFiles                  []float64
	hostCPU, available                              []float64 // percent of all cores, MiB
	retransmits, overflows, drops                   []float64 // in a step

	rows [][]int64 // lateness by point, then heatRows
}

func newSeries(m *shard.Merged, samples []resources.Sample, cores int) *series {
	s := &series{}
	var from, to int64 = math.MaxInt64, 0
	see := func(first, last int64) { from, to = min(from, first/step*step), max(to, last/step*step) }
	for _, b := range m.Series {
		see(b.Unix, b.Unix+step)
	}
	if len(m.Series) == 0 {
		for _, r := range samples {
			see(r.Unix, r.Unix)
		}
	}
	if to == 0 {
		return s
	}
	from, to = dense(from, to, m.Series, samples)
	s.from, s.n = from, int((to-from)/step)+1
	for _, b := range m.Series {
		s.addBucket(b)
	}
	s.addSamples(samples, cores)
	return s
}

// dense bounds the axis where there is next to nothing on it: the clock of a runner that says 1970
// would make it half a century long, with a point for each step of it in each column. What is far
// from the middle of what there is is left out; such a run is invalid, and the verdict says why.
func dense(from, to int64, buckets []shard.Bucket, samples []resources.Sample) (int64, int64) {
	const most, least = 10, 24 * 3600 // steps for each bucket, seconds
	n, middle := len(buckets), from
	if n > 0 {
		middle = buckets[n/2].Unix / step * step
	} else if n = len(samples); n > 0 {
		middle = samples[n/2].Unix / step * step
	}
	around := max(most*int64(n)*step, least)
	return max(from, middle-around), min(to, middle+around)
}

// put sets a value on the axis; a column is made when its first value comes.
func (s *series) put(column *[]float64, unix int64, value float64) {
	i := (unix - s.from + step/2) / step
	if unix < s.from || i >= int64(s.n) {
		return
	}
	if *column == nil {
		*column = make([]float64, s.n)
		for i := range *column {
			(*column)[i] = math.NaN()
		}
	}
	(*column)[i] = value
}

func (s *series) addBucket(b shard.Bucket) {
	put := func(column *[]float64, value float64) { s.put(column, b.Unix+step, value) }
	put(&s.open, float64(b.Open))
	put(&s.opened, float64(b.Opened))
	put(&s.closed, float64(b.Closed))
	put(&s.noops, float64(b.Noops))
	put(&s.late, float64(b.Late))
	put(&s.faults, float64(b.Faults))
	if h := lateness(b); h != nil {
		put(&s.p50, millis(h.Quantile(.5)))
		put(&s.p99, millis(h.Quantile(.99)))
		put(&s.max, millis(h.Max()))
		if s.rows == nil {
			s.rows = make([][]int64, s.n)
		}
		if i := (b.Unix-s.from)/step + 1; b.Unix >= s.from && i < int64(s.n) {
			s.rows[i] = h.CountBy(heatRows)
		}
	}
	if b.RSS == 0 {
		return // the runners could not see themselves
	}
	put(&s.runnerRSS, mib(b.RSS))
	if b.HeapLive > 0 {
		put(&s.runnerLive, mib(b.HeapLive))
	}
	put(&s.runnerCPU, b.CPUPercent)
	put(&s.runnerGo, float64(b.Goroutines))
	put(&s.runnerGC, float64(b.GCPauseUS)/1000)
	put(&s.runDelay, float64(b.RunDelayMS))
	put(&s.stall, float64(b.StallMS))
	if b.Files > 0 {
		put(&s.runnerFiles, float64(b.Files))
	}
}

func lateness(b shard.Bucket) *shard.Histogram {
	if b.Lateness == nil {
		return nil
	}
	h, err := b.Lateness.Unpack()
	if err != nil {
		return nil // already a problem of the merge
	}
	return h
}

func (s *series) addSamples(samples []resources.Sample, cores int) {
	for i, now := range samples {
		put := func(column *[]float64, value float64) { s.put(column, now.Unix, value) }
		if now.BackendRSS > 0 {
			put(&s.backendRSS, mib(now.BackendRSS))
			put(&s.backendFiles, float64(now.Files))
			put(&s.backendGo, float64(now.Goroutines))
			put(&s.streams, float64(now.Streams))
		}
		if now.NginxRSS > 0 {
			put(&s.nginxRSS, mib(now.NginxRSS))
		}
		if now.NginxFiles > 0 {
			put(&s.nginxFiles, float64(now.NginxFiles))
		}
		if now.Available > 0 {
			put(&s.available, mib(now.Available))
		}
		if i > 0 {
			s.addRates(samples[i-1], now, cores)
		}
	}
}

// addRates puts what happened between two samples. A counter that falls is of a new process.
func (s *series) addRates(before, now resources.Sample, cores int) {
	wall := float64(now.Unix - before.Unix)
	if wall <= 0 {
		return
	}
	put := func(column *[]float64, was, is, per float64) {
		if was > 0 && is >= was {
			s.put(column, now.Unix, (is-was)*per)
		}
	}
	put(&s.backendCPU, before.BackendCPU, now.BackendCPU, 100/wall)
	put(&s.nginxCPU, before.NginxCPU, now.NginxCPU, 100/wall)
	put(&s.hostCPU, before.BusySeconds, now.BusySeconds, 100/wall/float64(max(cores, 1)))
	put(&s.backendGC, before.BackendGCSeconds, now.BackendGCSeconds, 1000)
	put(&s.backendGCs, float64(before.BackendGCs), float64(now.BackendGCs), 1)
	if before.NetworkKnown && now.NetworkKnown {
		count := func(column *[]float64, was, is uint64) {
			if is >= was {
				s.put(column, now.Unix, float64(is-was))
			}
		}
		count(&s.retransmits, before.Retransmits, now.Retransmits)
		count(&s.overflows, before.Overflows, now.Overflows)
		count(&s.drops, before.Drops, now.Drops)
	}
}

// at is the wall time of a point.
func (s *series) at(i int) float64 { return float64(s.from + int64(i)*step) }

// index is the point of a wall time, within the axis.
func (s *series) index(unix float64) int {
	return int(min(max((unix-float64(s.from))/float64(step), 0), float64(s.n-1)))
}

// known are the values from one point up to, but without, another that are numbers.
func known(column []float64, from, to int) []float64 {
	if column == nil || from >= to {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(column[from:to]), math.IsNaN)
}

func mean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func microseconds(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
