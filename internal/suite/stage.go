package suite

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// The kinds of stages that scripts of HTTP suites declare.
const (
	kindLoad     = "load"
	kindWarmup   = "warmup"
	kindVolume   = "volume"
	kindSequence = "sequence"
	kindParallel = "parallel"
	kindHealth   = "health"
)

// Units of metrics.
const (
	perSecond  = "requests/s"
	OfRequests = "% of requests" // a share of all requests
)

// Requests holds the totals of a set of requests. Failed requests are counted separately, so that fast refusals do not
// make responses look fast.
type Requests struct {
	OK, Failed  *shard.Histogram // times of good and of failed requests
	Undelayed   *shard.Histogram // times of OK without the maximum delay that the generator may have added
	Connected   *shard.Histogram // times of OK without the wait for a connection
	Late        *shard.Histogram // responses of OK after the end of a stage of fixed length, by the time since then
	Codes       map[string]int64 // number of Failed by code
	Servers     map[string]int64 // number of OK by server
	Dropped     int64            // requests not made, because no connection was free in time, or the stage ended
	First, Last time.Time        // start of the first request, end of the last one; a stage may move both
	sum, square float64          // sums of the times of OK, in milliseconds, and of their squares
	fastest     float64          // minimum time of OK, in milliseconds
	metrics     []shard.Metric   // all series passed to Add
	late        []shard.Metric   // all series passed to AddLate
}

func newRequests() *Requests {
	return &Requests{
		OK: shard.NewHistogram(), Failed: shard.NewHistogram(), Undelayed: shard.NewHistogram(), Connected: shard.NewHistogram(), Late: shard.NewHistogram(),
		Codes: map[string]int64{}, Servers: map[string]int64{},
	}
}

// Add adds one series of the metric shard.RequestDuration, or of shard.FirstByte for the times to the first byte.
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
	if q.OK.Count() == 0 || m.Min < q.fastest {
		q.fastest = m.Min
	}
	q.OK.Merge(m.Trend)
	q.Undelayed.Merge(m.Undelayed)
	if m.Tags[shard.TagWaited] == "" {
		q.Connected.Merge(m.Trend)
	}
	q.sum += m.Sum
	q.square += m.Squares
	if server := m.Tags[shard.TagServer]; server != "" {
		q.Servers[server] += m.Count
	}
}

// AddLate adds one series of the metric shard.ResponseDelay.
func (q *Requests) AddLate(m shard.Metric) {
	q.Late.Merge(m.Trend)
	q.late = append(q.late, m)
}

// Total returns the number of requests.
func (q *Requests) Total() int64 { return q.OK.Count() + q.Failed.Count() }

// FailedShare returns the share of all requests that failed, 0 to 1.
func (q *Requests) FailedShare() float64 { return share(q.Failed.Count(), q.Total()) }

// Span returns the seconds from First to Last.
func (q *Requests) Span() float64 { return q.Last.Sub(q.First).Seconds() }

// timelyResponses returns the number of good responses before the end of the stage.
func (q *Requests) timelyResponses() int64 { return q.OK.Count() - q.Late.Count() }

// PerSecond returns the good responses within the span, per second.
func (q *Requests) PerSecond() float64 {
	if s := q.Span(); s > 0 {
		return float64(q.timelyResponses()) / s
	}
	return 0
}

// Mean returns the mean time of the good responses in milliseconds.
func (q *Requests) Mean() float64 { return q.sum / float64(max(q.OK.Count(), 1)) }

// StdDev returns the standard deviation of the times of the good responses in milliseconds.
func (q *Requests) StdDev() float64 {
	n := float64(max(q.OK.Count(), 1))
	return math.Sqrt(max(q.square/n-q.Mean()*q.Mean(), 0))
}

func share(n, total int64) float64 {
	if total == 0 {
		return 0
	}
	return float64(n) / float64(total)
}

// quantile returns a quantile in milliseconds.
func quantile(h *shard.Histogram, q float64) float64 {
	return format.InMilliseconds(h.Quantile(q))
}

// A StageResult is a stage and its requests.
type StageResult struct {
	shard.Stage
	*Requests
	firstByte                *Requests // the times to the first byte of the responses
	Waiting                  int64     // requests that waited for a connection
	WaitMS                   float64   // the sum of these waits
	connectionLimit          string    // why the generator had too few connections for the rate; "" if it had enough
	BytesReceived, BytesSent float64
	Unrequested              int64   // connections with unrequested bytes
	Machine                  Machine // load of the machines during the stage

	Attributed, AttributedDropped int64 // the parts of Failed and Dropped that are attributed to the generator
	seconds                       []shard.Second
}

// stages returns the stages of all rounds, in the order in which the script declared them.
func (r *Run) stages() []StageResult {
	var out []StageResult
	for _, m := range r.Rounds {
		index, dropped := map[string]int{}, map[int]shard.Metric{}
		for _, st := range stagesOf(m) {
			index[st.Name] = len(out)
			out = append(out, StageResult{Stage: st, Requests: newRequests(), firstByte: newRequests()})
		}
		for _, metric := range m.Metrics {
			i, ok := index[metric.Tags[shard.TagStage]]
			if !ok {
				continue
			}
			out[i].add(metric)
			if metric.Name == shard.DroppedIterations {
				dropped[i] = metric
			}
		}
		for _, i := range index {
			out[i].Machine, out[i].seconds = r.machine(m, out[i].First, out[i].Last), m.Seconds
			if out[i].endAtLength() {
				out[i].Machine = r.machine(m, out[i].First, out[i].Last).replaceWaits(out[i].Machine)
			}
			out[i].attributeToGenerator(dropped[i])
		}
	}
	fastest := fastestOf(out)
	for i := range out {
		out[i].connectionLimit = out[i].tooFewConnections(fastest, r.limits().P95)
		out[i].startAtFirstResponse()
	}
	return out
}

func (st *StageResult) add(m shard.Metric) {
	switch m.Name {
	case shard.RequestDuration:
		st.Add(m)
	case shard.ResponseDelay:
		st.AddLate(m)
	case shard.DurationWithoutWait:
		if m.Tags[shard.TagCode] == shard.CodeOK {
			st.Connected.Merge(m.Trend)
		}
	case shard.UnrequestedBytes:
		st.Unrequested += int64(m.Sum)
	case shard.FirstByte:
		st.firstByte.Add(m)
	case shard.ConnectionWait:
		st.Waiting += m.Count
		st.WaitMS += m.Sum
	case shard.DroppedIterations:
		st.Dropped += int64(m.Sum)
	case "data_received":
		st.BytesReceived += m.Sum
	case "data_sent":
		st.BytesSent += m.Sum
	}
}

// endAtLength sets the end of a stage of fixed length, so that later responses and the later load of machines do not
// count for it. It returns false for a stage that lasts until its last request.
func (st *StageResult) endAtLength() bool {
	if st.Stage.Requests > 0 || st.Seconds <= 0 || st.First.IsZero() {
		return false
	}
	st.Last = st.First.Add(time.Duration(st.Seconds * float64(time.Second)))
	return true
}

// startAtFirstResponse moves the start of the span of a stage with a constant rate to the earliest possible response.
// From then on, a service that keeps up answers at the rate of the stage, regardless of the duration of a response.
func (st *StageResult) startAtFirstResponse() {
	if st.Rate > 0 && st.Stage.Requests == 0 && st.OK.Count() > 0 {
		st.First = st.First.Add(time.Duration(st.fastest * float64(time.Millisecond)))
	}
}

// goodResponsesWithGrace returns the number of good responses up to grace after the end of the stage. It counts all
// good responses of a stage without a constant rate.
func (st *StageResult) goodResponsesWithGrace(grace time.Duration) int64 {
	if st.Rate == 0 || st.Late.Count() == 0 {
		return st.OK.Count()
	}
	return st.timelyResponses() + st.Late.CountBy([]time.Duration{grace})[0]
}

func (st *StageResult) rateMetric(name string) verdict.Metric {
	return verdict.Metric{Name: name, Unit: perSecond, Value: st.PerSecond(), HigherIsBetter: true, Bound: st.isGeneratorLimited()}
}

// timeMetrics returns the times of the good responses and the share of failures. subject names the requests.
func (q *Requests) timeMetrics(subject string, bound bool) []verdict.Metric {
	failed := verdict.Metric{Name: "failed " + subject, Unit: OfRequests, Value: 100 * q.FailedShare(), Requests: q.Total(), Bound: bound}
	if q.OK.Count() == 0 {
		return []verdict.Metric{failed}
	}
	var out []verdict.Metric
	add := func(name string, value, undelayed float64) {
		out = append(out, verdict.Metric{Name: name + " " + subject, Unit: "ms", Value: value, Undelayed: &undelayed, Bound: bound})
	}
	add("mean", q.Mean(), format.InMilliseconds(q.Undelayed.Mean()))
	add("p50", quantile(q.OK, .5), quantile(q.Undelayed, .5))
	add("p95", quantile(q.OK, .95), quantile(q.Undelayed, .95))
	add("p99", quantile(q.OK, .99), quantile(q.Undelayed, .99))
	add("max", quantile(q.OK, 1), quantile(q.Undelayed, 1))
	return append(out, failed)
}

// isGeneratorLimited reports whether the generator may have limited the figures of the stage, even if other programs
// used the generator's cores.
func (st *StageResult) isGeneratorLimited() bool {
	return !st.Machine.TooShort && st.Machine.GeneratorLimit() != ""
}

// Curve returns the label of a stage in a chart of times, equal for all rounds. It returns "" for warm-ups and health
// checks.
func Curve(st shard.Stage) string {
	if st.Kind == kindWarmup || st.Kind == kindHealth {
		return ""
	}
	load, _, _ := strings.Cut(st.Title, ", round ")
	return load
}

func filterKind(stages []StageResult, kind string) (out []StageResult) {
	for _, st := range stages {
		if st.Kind == kind {
			out = append(out, st)
		}
	}
	return out
}

func total(stages []StageResult) *Requests {
	sum := newRequests()
	for _, st := range stages {
		sum.Dropped += st.Dropped
		for _, m := range st.metrics {
			sum.Add(m)
		}
		for _, m := range st.late {
			sum.AddLate(m)
		}
	}
	return sum
}

func (q *Requests) fact() verdict.Fact {
	return verdict.Fact{Name: "requests", Value: sentence("%v made, %v good, %s failed, %v not made",
		q.Total(), q.OK.Count(), ratio(q.Failed.Count(), q.Total()), q.Dropped)}
}

// A roundLevel holds all rounds of one target with the same number of concurrent requests. Its StageResult is the sum
// of the rounds, without the time between the rounds.
type roundLevel struct {
	StageResult
	rounds []StageResult
}

// groupByLevel groups the stages of one target by the number of concurrent requests, in the order of the first stages.
func groupByLevel(stages []StageResult) (out []roundLevel) {
	for _, st := range stages {
		i := slices.IndexFunc(out, func(l roundLevel) bool { return l.Concurrency == st.Concurrency })
		if i < 0 {
			i, out = len(out), append(out, roundLevel{StageResult: StageResult{Stage: st.Stage}})
		}
		out[i].rounds = append(out[i].rounds, st)
	}
	for i := range out {
		out[i].sum()
	}
	return out
}

func (l *roundLevel) sum() {
	l.Requests, l.Title = total(l.rounds), sentence("%v at a time, %s", l.Concurrency, l.Target)
	l.First = l.rounds[0].First
	l.Last = l.First
	l.Stage.Requests = 0
	var machines []Machine
	for _, st := range l.rounds {
		l.Last = l.Last.Add(st.Last.Sub(st.First))
		l.Stage.Requests += st.Stage.Requests
		l.BytesSent += st.BytesSent
		l.Attributed += st.Attributed
		l.AttributedDropped += st.AttributedDropped
		machines = append(machines, st.Machine)
	}
	l.Machine = medianMachine(machines)
}

func (l *roundLevel) values(figure func(*StageResult) float64) (out []float64) {
	for i := range l.rounds {
		out = append(out, figure(&l.rounds[i]))
	}
	return out
}

// medianMachine returns the machine of the median round. Rounds are ordered by whether the generator was the limit, and
// then by the CPU of the runners. A single round with a fault therefore does not decide. If at least half of the rounds
// were too short for figures, the result is TooShort.
func medianMachine(rounds []Machine) Machine {
	known := slices.DeleteFunc(slices.Clone(rounds), func(m Machine) bool { return m.TooShort })
	if 2*len(known) <= len(rounds) {
		first := rounds[0]
		return Machine{TooShort: true, SeparateCores: first.SeparateCores, Cores: first.Cores, SharedHost: first.SharedHost}
	}
	rank := func(m Machine) int {
		switch limit, _ := m.Limit(); limit {
		case LimitGenerator:
			return 2
		case LimitUnknown:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(known, func(a, b Machine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Runners, b.Runners))
	})
	return known[len(known)/2]
}
