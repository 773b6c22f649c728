package suite

import (
	"fmt"
	"iter"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Memory counts as flat if it is at most flatFactor × M + flatSpare at the last scale, where M is the memory at the
// first scale.
const (
	flatFactor = 1.25
	flatSpare  = 16 << 20 // bytes
)

// memoryByScale returns the memory of runners and backend at each scale, and the checks that it is flat. There are no
// checks for a single scale, or for connections that stay open.
func (r *Run) memoryByScale(m *shard.Merged, stages []StageResult) (t verdict.Table, flat []verdict.Check) {
	t = newTable("Memory by scale", "maximum during each scale", "connections|runners|backend")
	var runners, backend []uint64
	for _, st := range stages {
		a, b := r.memory(m, st.First, st.Last)
		runners, backend = append(runners, a), append(backend, b)
		t.Add(st.Title, sampledBytes(a), sampledBytes(b))
	}
	if len(stages) < 2 || r.number("HOLD_SECONDS") > 0 {
		return t, nil
	}
	compare := func(name string, rss []uint64) {
		first, last := rss[0], rss[len(rss)-1]
		if first == 0 || last == 0 {
			return // memory is not reported, or the scale was shorter than the time between samples
		}
		limit := uint64(flatFactor*float64(first)) + flatSpare
		flat = append(flat, check(CheckMemory, name, "at most "+format.Bytes(limit), format.Bytes(last), last <= limit))
	}
	compare("memory of the runners is flat", runners)
	compare("memory of the backend is flat", backend)
	return t, flat
}

func sampledBytes(n uint64) string {
	if n == 0 {
		return "–"
	}
	return format.Bytes(n)
}

func (r *Run) memory(m *shard.Merged, from, to time.Time) (runners, backend uint64) {
	for _, b := range m.Series {
		start := time.Unix(b.Unix, 0)
		if overlap(start, start.Add(shard.BucketWidth), from, to) > 0 {
			runners = max(runners, b.RSS)
		}
	}
	for _, s := range r.Samples {
		if at := time.Unix(s.Unix, 0); !at.Before(from) && at.Before(to) {
			backend = max(backend, s.BackendRSS)
		}
	}
	return runners, backend
}

const maxMemoryRows = 20

// memoryOverTime returns a table of memory, descriptors and closed connections over time. The table shows leaks of
// connections.
func (r *Run) memoryOverTime(m *shard.Merged, stages []StageResult) verdict.Table {
	t := newTable("Memory over time", "maximum in the period that ends at each time; heap: in use after the last garbage collection; "+
		"files: descriptors; TIME_WAIT: closed connections whose ports this machine still reserves",
		"minutes|scale|runners|runners' heap|runners' files|backend|backend's files|TIME_WAIT")
	if len(m.Series) == 0 {
		return t
	}
	from, to := time.Unix(m.Series[0].Unix, 0), time.Unix(m.Series[len(m.Series)-1].Unix, 0).Add(shard.BucketWidth)
	width := max(to.Sub(from)/maxMemoryRows, shard.BucketWidth).Truncate(shard.BucketWidth)
	if width*maxMemoryRows < to.Sub(from) {
		width += shard.BucketWidth
	}
	started, ended := runTime(m)
	for start := from; start.Before(to); start = start.Add(width) {
		end := start.Add(width)
		inRow := func(unix int64) bool { at := time.Unix(unix, 0); return !at.Before(start) && at.Before(end) }
		var runners shard.ProcessUsage
		for _, b := range m.Series {
			if inRow(b.Unix) {
				runners.RSS, runners.HeapLive, runners.Files = max(runners.RSS, b.RSS), max(runners.HeapLive, b.HeapLive), max(runners.Files, b.Files)
			}
		}
		var backend uint64
		var files, waiting int
		for _, s := range r.Samples {
			if inRow(s.Unix) {
				backend, files, waiting = max(backend, s.BackendRSS), max(files, s.Files), max(waiting, s.TimeWait)
			}
		}
		t.Add(fmt.Sprintf("%.2f", min(end.Sub(started), ended.Sub(started)).Minutes()), scalesDuring(m, stages, start, end), sampledBytes(runners.RSS), sampledBytes(runners.HeapLive),
			format.Thousands(runners.Files), sampledBytes(backend), format.Thousands(files), format.Thousands(waiting))
	}
	return t
}

// runTime returns the start of the first runner and the end of the last one. Buckets may begin earlier and end later.
func runTime(m *shard.Merged) (started, ended time.Time) {
	for i := range m.Runners {
		r := &m.Runners[i]
		if i == 0 || r.Started().Before(started) {
			started = r.Started()
		}
		if end := time.UnixMicro(r.EndedUS); end.After(ended) {
			ended = end
		}
	}
	return started, ended
}

// scalesDuring returns the titles of the scales between two times; "–" without a scale. A scale whose connections
// stay open lasts until their last response.
func scalesDuring(m *shard.Merged, stages []StageResult, from, to time.Time) string {
	titles, responses := "", sumsByStage(m, "handshake_answer")
	for _, st := range stages {
		if overlap(from, to, st.First, time.UnixMicro(max(st.Last.UnixMicro(), responses[st.Name].LastUS))) > 0 {
			titles += ", " + st.Title
		}
	}
	if titles == "" {
		return "–"
	}
	return titles[len(", "):]
}

// processMemory is the resident memory of a process in bytes: before the first connection, its peak, and its median
// while all connections were open. 0 means that there is no sample.
type processMemory struct{ before, peak, open uint64 }

// openConnectionMemory returns the memory for connections that stay open, and the growth per connection as metrics.
func (r *Run) openConnectionMemory(m *shard.Merged, st StageResult) (t verdict.Table, metrics []verdict.Metric) {
	t = newTable("Memory of open connections", "resident memory before the first connection, the maximum while connections were opening and open, "+
		"and the median while all were open; KB each: growth per connection from before the first connection until all were open, in units of 1024 bytes, including garbage",
		"process|connections|before|maximum|all open|KB each")
	add := func(name, metric string, samples iter.Seq2[time.Time, uint64]) {
		p, perConnection := memoryOf(samples, st, sumsByStage(m, "handshake_answer")[st.Name]), "–"
		if p.before > 0 && p.open >= p.before && st.OK.Count() > 0 {
			kb := float64(p.open-p.before) / 1024 / float64(st.OK.Count())
			perConnection = figure(kb)
			metrics = append(metrics, verdict.Metric{Name: metric, Unit: "KB", Value: kb})
		}
		t.Add(row(name, st.OK.Count(), sampledBytes(p.before), sampledBytes(p.peak), sampledBytes(p.open), perConnection)...)
	}
	add("runners, together", "runner, per held connection", runnersRSS(m))
	add("backend", "backend, per held connection", func(yield func(time.Time, uint64) bool) {
		for _, s := range r.Samples {
			if !yield(time.Unix(s.Unix, 0), s.BackendRSS) {
				return
			}
		}
	})
	return t, metrics
}

// memoryOf returns the memory of a process from samples. responses has the time of the last response.
func memoryOf(samples iter.Seq2[time.Time, uint64], st StageResult, responses shard.Metric) (p processMemory) {
	var open []float64
	for at, rss := range samples {
		switch {
		case rss == 0:
		case !at.After(st.First):
			p.before = rss
		case at.After(st.Last) && !at.After(time.UnixMicro(responses.LastUS)):
			open = append(open, float64(rss))
			fallthrough
		default:
			p.peak = max(p.peak, rss)
		}
	}
	if len(open) > 0 {
		p.open = uint64(resources.Median(open))
	}
	return p
}

// runnersRSS yields the memory of all runners together at the end of each second of the first runner. It omits seconds
// for which a runner has no sample.
func runnersRSS(m *shard.Merged) iter.Seq2[time.Time, uint64] {
	return func(yield func(time.Time, uint64) bool) {
		first := m.Seconds
		if len(m.Runners) > 1 { // the seconds of the first runner come first, in ascending order
			for i, s := range m.Seconds {
				if i > 0 && s.FromUS < m.Seconds[i-1].FromUS {
					first = m.Seconds[:i]
					break
				}
			}
		}
		for _, at := range first {
			var sum uint64
			samples := 0
			for _, s := range m.Seconds {
				if s.FromUS < at.ToUS && at.ToUS <= s.ToUS && s.RSS > 0 {
					sum += s.RSS
					samples++
				}
			}
			if samples == len(m.Runners) && !yield(time.UnixMicro(at.ToUS), sum) {
				return
			}
		}
	}
}
