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
	Connected   *shard.Histogram // the times of OK without the wait for a connection
	Late        *shard.Histogram // the answers of OK after the end of a stage with a fixed length: how long after it
	Codes       map[string]int64 // of those that failed
	Servers     map[string]int64 // of those that did not
	First, Last time.Time        // from the start of the first to the end of the last
	sum, square float64          // of the good ones' milliseconds
	least       float64
	begun       bool
	metrics     []shard.Metric // as they came
	late        []shard.Metric // the series of shard.AnsweredLate
}

// NewRequests is the sum of none.
func NewRequests() *Requests {
	return &Requests{
		OK: shard.NewHistogram(), Own: shard.NewHistogram(), Connected: shard.NewHistogram(), Late: shard.NewHistogram(), Failed: shard.NewHistogram(),
		Codes: map[string]int64{}, Servers: map[string]int64{},
	}
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
	if m.Tags[shard.TagWaited] == "" {
		q.Connected.Merge(m.Trend)
	}
	q.sum += m.Sum
	q.square += m.Squares
	if !q.begun || m.Min < q.least {
		q.least, q.begun = m.Min, true
	}
	if server := m.Tags[shard.TagServer]; server != "" {
		q.Servers[server] += m.Count
	}
}

// AddLate adds one series of the metric shard.AnsweredLate.
func (q *Requests) AddLate(m shard.Metric) {
	q.Late.Merge(m.Trend)
	q.late = append(q.late, m)
}

// Total is how many requests there were.
func (q *Requests) Total() int64 { return q.OK.Count() + q.Failed.Count() }

// FailedShare is the share of all that failed, 0 to 1.
func (q *Requests) FailedShare() float64 { return share(q.Failed.Count(), q.Total()) }

// Span is the seconds from the start of the first to the end of the last.
func (q *Requests) Span() float64 { return q.Last.Sub(q.First).Seconds() }

// PerSecond returns the good answers within the span, per second.
func (q *Requests) PerSecond() float64 {
	if s := q.Span(); s > 0 {
		return float64(q.OK.Count()-q.Late.Count()) / s
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
	return format.InMilliseconds(h.Quantile(q))
}

// A StageResult is a stage and what came of it.
type StageResult struct {
	shard.Stage
	*Requests
	firstByte *Requests // the times to the first byte of their answers
	Dropped   int64     // requests that were never made: no connection was free in time, or time was up
	Waiting   int64     // requests that had to wait for a connection
	held      string    // why the generator had too few connections for the rate; "": it had enough
	WaitMS    float64   // for so long, together
	Bytes     float64   // received
	Sent      float64   // bytes
	Machine   Machine   // while it ran

	Unrequested int64 // connections with bytes after an answer that no request asked for

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
			case shard.AnsweredLate:
				out[i].AddLate(metric)
			case shard.Connected:
				if metric.Tags[shard.TagCode] == shard.CodeOK {
					out[i].Connected.Merge(metric.Trend)
				}
			case shard.Unrequested:
				out[i].Unrequested += int64(metric.Sum)
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
			if out[i].fix() {
				out[i].Machine = r.machine(m, out[i].First, out[i].Last).waiting(out[i].Machine)
			}
			out[i].excuse(dropped[i])
		}
	}
	fastest := fastestOf(out)
	for i := range out {
		out[i].held = out[i].tooFewConnections(fastest, r.limits().P95)
		out[i].skipFirst()
	}
	return out
}

// fix sets the end of a stage of fixed length. Later answers, and the load of machines after it, are not attributed to the stage. ok
// is false for a stage that lasts as long as its requests.
func (st *StageResult) fix() (ok bool) {
	if st.Stage.Requests > 0 || st.Seconds <= 0 || st.First.IsZero() {
		return false
	}
	st.Last = st.First.Add(time.Duration(st.Seconds * float64(time.Second)))
	return true
}

// skipFirst moves the start of the span of a stage with a constant rate to the earliest possible answer. From there on a service that
// keeps up answers at the rate of the stage, even if each answer takes 0.9 s.
func (st *StageResult) skipFirst() {
	if st.Rate > 0 && st.Stage.Requests == 0 && st.OK.Count() > 0 {
		st.First = st.First.Add(time.Duration(st.least * float64(time.Millisecond)))
	}
}

// answeredBy returns the number of good answers until the grace period after the end of the stage.
func (st *StageResult) answeredBy(grace time.Duration) int64 {
	if st.Rate == 0 || st.Late.Count() == 0 {
		return st.OK.Count()
	}
	return st.OK.Count() - st.Late.Count() + st.Late.CountBy([]time.Duration{grace})[0]
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
		for _, m := range st.late {
			t.AddLate(m)
		}
	}
	return t
}

// fact is what became of all requests.
func (t Total) fact() verdict.Fact {
	return verdict.Fact{Name: "requests", Value: fmt.Sprintf("%s made, %s good, %s failed, %s never made",
		format.Thousands(t.Total()), format.Thousands(t.OK.Count()), ratio(t.Failed.Count(), t.Total()), format.Thousands(t.Dropped))}
}
