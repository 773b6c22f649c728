package suite

import (
	"fmt"
	"iter"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Growth of memory from the first scale to the last that counts as flat.
const (
	flatFactor = 1.25
	flatSpare  = 16 << 20
)

// memoryByScale is what runner and backend took at each scale. Memory is flat when the last scale
// takes hardly more than the first, though it has many times the connections.
func (r *Run) memoryByScale(m *shard.Merged, stages []StageResult) (t verdict.Table, flat []verdict.Check) {
	t = verdict.Table{Title: "Memory by scale", Note: "the most during each scale", Columns: []string{"connections", "runners", "backend"}}
	var runners, backend []uint64
	for _, st := range stages {
		a, b := r.memory(m, st.First, st.Last)
		runners, backend = append(runners, a), append(backend, b)
		t.Rows = append(t.Rows, []string{st.Title, sampled(a), sampled(b)})
	}
	if len(stages) < 2 || r.number("HOLD_SECONDS") > 0 {
		return t, nil
	}
	last := len(stages) - 1
	for _, p := range []struct {
		name string
		rss  []uint64
	}{{"memory of the runners is flat", runners}, {"memory of the backend is flat", backend}} {
		if p.rss[0] == 0 || p.rss[last] == 0 {
			continue // it does not show it, or the scale was shorter than a sample
		}
		limit := uint64(flatFactor*float64(p.rss[0])) + flatSpare
		flat = append(flat, verdict.Check{
			ID: CheckMemory, Name: p.name, Limit: "at most " + format.Bytes(limit), Actual: format.Bytes(p.rss[last]), Pass: p.rss[last] <= limit,
			Why: "what is kept of each connection adds up",
		})
	}
	return t, flat
}

// sampled is an amount of memory as text, "–" for none: the scale was shorter than a sample.
func sampled(n uint64) string {
	if n == 0 {
		return "–"
	}
	return format.Bytes(n)
}

// memory is the most that all runners together and the backend took between two instants.
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

// mostStretches is how many rows a table of memory over time has at most.
const mostStretches = 20

// memoryOverTime is what runners and backend took in stretches of the run, with what a leak of connections would show in.
func (r *Run) memoryOverTime(m *shard.Merged, stages []StageResult) verdict.Table {
	t := verdict.Table{
		Title: "Memory over time",
		Note: "the most in each stretch of time, which is named by its end; heap: what the last garbage collection left in use; files: descriptors; " +
			"TIME_WAIT: closed connections of which this machine keeps the ports",
		Columns: []string{"minutes", "scale", "runners", "of it heap", "runners' files", "backend", "backend's files", "TIME_WAIT"},
	}
	if len(m.Series) == 0 {
		return t
	}
	from, to := time.Unix(m.Series[0].Unix, 0), time.Unix(m.Series[len(m.Series)-1].Unix, 0).Add(shard.BucketWidth)
	width := max(to.Sub(from)/mostStretches, shard.BucketWidth).Truncate(shard.BucketWidth)
	if width*mostStretches < to.Sub(from) {
		width += shard.BucketWidth
	}
	for start := from; start.Before(to); start = start.Add(width) {
		end := start.Add(width)
		within := func(unix int64) bool { at := time.Unix(unix, 0); return !at.Before(start) && at.Before(end) }
		var runners shard.Process
		for _, b := range m.Series {
			if within(b.Unix) {
				runners.RSS, runners.HeapLive, runners.Files = max(runners.RSS, b.RSS), max(runners.HeapLive, b.HeapLive), max(runners.Files, b.Files)
			}
		}
		var backend uint64
		var files, waiting int
		for _, s := range r.Samples {
			if within(s.Unix) {
				backend, files, waiting = max(backend, s.BackendRSS), max(files, s.Files), max(waiting, s.TimeWait)
			}
		}
		t.Add(fmt.Sprintf("%.2f", min(end.Sub(from), to.Sub(from)).Minutes()), during(m, stages, start, end), sampled(runners.RSS), sampled(runners.HeapLive),
			format.Thousands(runners.Files), sampled(backend), format.Thousands(files), format.Thousands(waiting))
	}
	return t
}

// during are the scales of a stretch of time, by their titles; – where there were none. A scale that is held lasts to its last answer.
func during(m *shard.Merged, stages []StageResult, from, to time.Time) string {
	titles, answers := "", sumsByStage(m, "handshake_answer")
	for _, st := range stages {
		if overlap(from, to, st.First, time.UnixMicro(max(st.Last.UnixMicro(), answers[st.Name].LastUS))) > 0 {
			titles += ", " + st.Title
		}
	}
	if titles == "" {
		return "–"
	}
	return titles[len(", "):]
}

// heldMemory is what runners and backend took before the first connection and, by the median, while all were held, in bytes. 0 is
// not known: nobody shows it, or the time was too short for a sample.
type heldMemory struct {
	connections              int64
	runnersBefore, runners   uint64
	backendBefore, backend   uint64
	runnersPeak, backendPeak uint64
}

func (r *Run) heldMemory(m *shard.Merged, st StageResult) (out heldMemory) {
	out.connections = st.OK.Count()
	answered := sumsByStage(m, "handshake_answer")[st.Name]
	var runners, backend []float64
	note := func(at time.Time, rss uint64, before, peak *uint64, held *[]float64) {
		if rss == 0 {
			return
		}
		switch {
		case !at.After(st.First):
			*before = rss
		case at.After(st.Last) && !at.After(time.UnixMicro(answered.LastUS)):
			*held = append(*held, float64(rss))
			fallthrough
		default:
			*peak = max(*peak, rss)
		}
	}
	for at, rss := range runnersRSS(m) {
		note(at, rss, &out.runnersBefore, &out.runnersPeak, &runners)
	}
	for _, s := range r.Samples {
		note(time.Unix(s.Unix, 0), s.BackendRSS, &out.backendBefore, &out.backendPeak, &backend)
	}
	if len(runners) > 0 {
		out.runners = uint64(resources.Median(runners))
	}
	if len(backend) > 0 {
		out.backend = uint64(resources.Median(backend))
	}
	return out
}

// runnersRSS is the memory of all runners together, by time: at the end of each second of the first one.
func runnersRSS(m *shard.Merged) iter.Seq2[time.Time, uint64] {
	return func(yield func(time.Time, uint64) bool) {
		first := m.Seconds
		if len(m.Runners) > 1 { // those of one do not overlap, and come first
			for i, s := range m.Seconds {
				if i > 0 && s.FromUS < m.Seconds[i-1].FromUS {
					first = m.Seconds[:i]
					break
				}
			}
		}
		for _, at := range first {
			var sum uint64
			seen := 0
			for _, s := range m.Seconds {
				if s.FromUS < at.ToUS && at.ToUS <= s.ToUS && s.RSS > 0 {
					sum += s.RSS
					seen++
				}
			}
			if seen == len(m.Runners) && !yield(time.UnixMicro(at.ToUS), sum) {
				return
			}
		}
	}
}

// perConnection is by how much a process grew for each, in KB; ok is false where it is not known.
func (h *heldMemory) perConnection(before, held uint64) (kb float64, ok bool) {
	if before == 0 || held < before || h.connections == 0 {
		return 0, false
	}
	return float64(held-before) / 1024 / float64(h.connections), true
}

func (h *heldMemory) table() verdict.Table {
	t := verdict.Table{
		Title: "Memory of held connections",
		Note: "resident memory before the first connection, the most while connections were opened and held, and the median while all were held; " +
			"KB (1024 bytes): the difference of the first and the last, by connection, garbage of the collectors included",
		Columns: []string{"process", "connections", "before", "at most", "while held", "KB each"},
	}
	row := func(name string, before, peak, held uint64) {
		each := "–"
		if kb, ok := h.perConnection(before, held); ok {
			each = figure(kb)
		}
		t.Add(name, format.Thousands(h.connections), sampled(before), sampled(peak), sampled(held), each)
	}
	row("runners, together", h.runnersBefore, h.runnersPeak, h.runners)
	row("backend", h.backendBefore, h.backendPeak, h.backend)
	return t
}

func (h *heldMemory) metrics() (out []verdict.Metric) {
	if kb, ok := h.perConnection(h.runnersBefore, h.runners); ok {
		out = append(out, verdict.Metric{Name: "runner, per held connection", Unit: "KB", Value: kb})
	}
	if kb, ok := h.perConnection(h.backendBefore, h.backend); ok {
		out = append(out, verdict.Metric{Name: "backend, per held connection", Unit: "KB", Value: kb})
	}
	return out
}
