package suite

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Requests sums up requests. What failed is kept apart: a refusal that comes at once must not
// make the answers look fast.
type Requests struct {
	OK, Failed  *shard.Histogram
	Own         *shard.Histogram // of OK: each time without what the generator can have added to it
	Codes       map[string]int64 // of those that failed
	Servers     map[string]int64 // of those that did not
	First, Last time.Time        // from the start of the first to the end of the last
	sum, square float64          // of the good ones' milliseconds
	least       float64
	begun       bool
	bare        bool           // a shard without own times
	metrics     []shard.Metric // as they came
}

// NewRequests is the sum of none.
func NewRequests() *Requests {
	return &Requests{OK: shard.NewHistogram(), Own: shard.NewHistogram(), Failed: shard.NewHistogram(), Codes: map[string]int64{}, Servers: map[string]int64{}}
}

// Add adds one series of the metric shard.RequestDuration.
func (q *Requests) Add(m shard.Metric) {
	first, last := time.UnixMicro(m.FirstUS), time.UnixMicro(m.LastUS)
	if q.First.IsZero() || first.Before(q.First) {
		q.First = first
	}
	if last.After(q.Last) {
		q.Last = last
	}
	q.metrics = append(q.metrics, m)
	if code := m.Tags[shard.TagCode]; code != shard.CodeOK {
		q.Failed.Merge(m.Trend)
		q.Codes[code] += m.Count
		return
	}
	q.OK.Merge(m.Trend)
	q.Own.Merge(m.Own)
	q.bare = q.bare || m.Own == nil
	q.sum += m.Sum
	q.square += m.Squares
	if !q.begun || m.Min < q.least {
		q.least, q.begun = m.Min, true
	}
	if server := m.Tags[shard.TagServer]; server != "" {
		q.Servers[server] += m.Count
	}
}

// Total is how many requests there were.
func (q *Requests) Total() int64 { return q.OK.Count() + q.Failed.Count() }

// FailedShare is the share of all that failed, 0 to 1.
func (q *Requests) FailedShare() float64 { return share(q.Failed.Count(), q.Total()) }

// Span is the seconds from the start of the first to the end of the last.
func (q *Requests) Span() float64 { return q.Last.Sub(q.First).Seconds() }

// PerSecond is good answers per second.
func (q *Requests) PerSecond() float64 {
	if s := q.Span(); s > 0 {
		return float64(q.OK.Count()) / s
	}
	return 0
}

// Mean is the good ones' in milliseconds.
func (q *Requests) Mean() float64 {
	if n := q.OK.Count(); n > 0 {
		return q.sum / float64(n)
	}
	return 0
}

// StdDev is the standard deviation of the good ones in milliseconds.
func (q *Requests) StdDev() float64 {
	n := float64(q.OK.Count())
	if n < 2 {
		return 0
	}
	return math.Sqrt(max(q.square/n-q.Mean()*q.Mean(), 0))
}

// Min is the shortest of the good ones in milliseconds.
func (q *Requests) Min() float64 { return q.least }

func share(n, total int64) float64 {
	if total == 0 {
		return 0
	}
	return float64(n) / float64(total)
}

// milliseconds of a quantile.
func quantile(h *shard.Histogram, q float64) float64 {
	return float64(h.Quantile(q).Microseconds()) / 1000
}

// A StageResult is a stage and what came of it.
type StageResult struct {
	shard.Stage
	*Requests
	firstByte *Requests // the times to the first byte of their answers
	Dropped   int64     // requests that were never made: no connection was free in time, or time was up
	Waiting   int64     // requests that had to wait for a connection
	WaitMS    float64   // for so long, together
	Bytes     float64   // received
	Sent      float64   // bytes
	Machine   Machine   // while it ran

	Excused, ExcusedDropped int64 // of those that failed and were dropped: by the generator itself
	seconds                 []shard.Second
}

// stages are the results of all rounds, in the order in which the script declared them.
func (r *Run) stages() []StageResult {
	var out []StageResult
	for _, m := range r.Rounds {
		index, dropped := map[string]int{}, map[int]shard.Metric{}
		for _, st := range stagesOf(m) {
			index[st.Name] = len(out)
			out = append(out, StageResult{Stage: st, Requests: NewRequests(), firstByte: NewRequests()})
		}
		for _, metric := range m.Metrics {
			i, ok := index[metric.Tags[shard.TagStage]]
			if !ok {
				continue
			}
			switch metric.Name {
			case shard.RequestDuration:
				out[i].Add(metric)
			case shard.FirstByte:
				out[i].firstByte.Add(metric)
			case shard.Waited:
				out[i].Waiting += metric.Count
				out[i].WaitMS += metric.Sum
			case shard.Dropped:
				out[i].Dropped += int64(metric.Sum)
				dropped[i] = metric
			case "data_received":
				out[i].Bytes += metric.Sum
			case "data_sent":
				out[i].Sent += metric.Sum
			}
		}
		for _, i := range index {
			out[i].Machine, out[i].seconds = r.machine(m, out[i].First, out[i].Last), m.Seconds
			if out[i].trim() {
				out[i].Machine = r.machine(m, out[i].First, out[i].Last).waiting(out[i].Machine)
			}
			out[i].excuse(dropped[i])
		}
	}
	return out
}

// trim ends a stage whose time is fixed when that is over, or with its last good answer if that came later: what was begun in
// time and failed long after it, such as the one request that ran into its timeout, is no part of the load. Nor are late
// answers of a closed loop all of it. Each place in it can have had one, so without these the rate is a lower bound.
func (st *StageResult) trim() bool {
	if st.Stage.Requests > 0 || st.Seconds <= 0 || st.First.IsZero() {
		return false
	}
	fixed := time.Duration(st.Seconds * float64(time.Second))
	last := fixed
	for _, m := range st.metrics {
		if m.Tags[shard.TagCode] == shard.CodeOK {
			last = max(last, time.UnixMicro(m.LastUS).Sub(st.First))
		}
	}
	if n, late := st.OK.Count(), int64(st.Concurrency); st.Rate == 0 && n > late {
		last = min(last, time.Duration(float64(fixed)*float64(n)/float64(n-late)))
	}
	if !st.Last.After(st.First.Add(last)) {
		return false
	}
	st.Last = st.First.Add(last)
	return true
}

// Curve names the load that a stage belongs to in a chart of times: the rounds of a level are one, and warm-ups and health checks
// none, "".
func Curve(st shard.Stage) string {
	if st.Kind == kindWarmup || st.Kind == kindHealth {
		return ""
	}
	load, _, _ := strings.Cut(st.Title, ", round ")
	return load
}

// of are the stages of some kinds.
func of(all []StageResult, kinds ...string) (out []StageResult) {
	for _, st := range all {
		if slices.Contains(kinds, st.Kind) {
			out = append(out, st)
		}
	}
	return out
}

// A Total is what became of the requests of several stages.
type Total struct {
	*Requests
	Dropped int64
}

func total(stages []StageResult) Total {
	t := Total{Requests: NewRequests()}
	for _, st := range stages {
		t.Dropped += st.Dropped
		for _, m := range st.metrics {
			t.Add(m)
		}
	}
	return t
}

// fact is what became of all requests.
func (t Total) fact() verdict.Fact {
	return verdict.Fact{Name: "requests", Value: fmt.Sprintf("%s made, %s good, %s failed, %s never made",
		format.Thousands(t.Total()), format.Thousands(t.OK.Count()), ratio(t.Failed.Count(), t.Total()), format.Thousands(t.Dropped))}
}
