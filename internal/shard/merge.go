package shard

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// Merged has the results of all runners. Counts, and all histograms except Latency, are exact sums, in whatever order
// shards are added.
type Merged struct {
	Plan         plan.Plan
	Suite        *Suite       // nil: the scripts declare none
	Service      Service      // zero: no streams, or an unknown service
	Reach        *Reach       // nil: no publisher
	Control      *Control     // of all control groups; URL is "" if their URLs differ
	Codings      []Coding     // by name, of compressed streams
	Redirects    []Redirect   // to origins other than the target's, the one with the most streams first
	HTTP2        *HTTP2       // of streams over HTTP/2; nil: there were none
	EndRequests  *EndRequests // requests that end streams; nil: there were none
	Responses    *Responses   // finite responses; nil: there were none
	Bursts       *Bursts      // messages of streams; nil: no shard has them
	Runners      []Runner     // by index
	Connect      *Histogram
	FirstMessage *Histogram
	Lateness     *Histogram
	Latency      *Latency // differences from the fastest message of the same runner
	Series       []Bucket // by time; sums over the runners, including RSS and CPU
	Points       []Bucket // as Series, in a short run; empty if a runner has none
	Seconds      []Second // of all runners; the seconds of one runner do not overlap
	Checks       []ScriptCheck
	Metrics      []Metric
	Connections  Connections // by runner, in the order of creation
	// FeedConnections has the records of all clients of the Feeds if Merged has only a part of a run; nil: Connections.
	FeedConnections *Connections
	// Problems are sentences about unreadable shards, and about differences between the shards or from the plan. A run
	// with a problem cannot pass.
	Problems  []string
	EarlyEnds []string // sentences about the runners that ended early

	groups      []group // each has the runners of one plan; several if laptops ran without a common plan
	withoutPlan bool    // laptops ran k6 without `soak run`, so there is no common plan
	published   bool    // any runner published
}

// A Connection is the record of a client, and its runner.
type Connection struct {
	ledger.Record
	Runner int // index into Merged.Runners
}

// Merge returns the sum of the shards of a run. Each difference from the plan becomes a problem.
func Merge(p plan.Plan, shards []*Shard) *Merged {
	var g Merger
	shards = slices.Clone(shards)
	slices.SortStableFunc(shards, func(a, b *Shard) int { return cmp.Compare(a.Runner.Index, b.Runner.Index) })
	for _, s := range shards {
		g.Add(s)
	}
	return g.Merged(p)
}

// A Merger adds shards one by one, so that a thousand shards need not be in memory. The zero value is ready to use.
type Merger struct {
	m           Merged
	parts       []part     // by runner
	buckets     bucketSums // of Series
	points      bucketSums // of Points
	lacksPoints bool       // a runner has no points, because its plan is different
	metrics     map[string]*Metric
	readErrors  []string // problems of series and responses that cannot be read
	buffer      packedBuffer
}

// A part has the data of one runner that a merge compares with the data of the others: plan, suite and service.
type part struct {
	plan     plan.Plan
	suite    *Suite // nil: the script declares none
	service  Service
	overflow bool // the runner had more combinations of tags than it counts separately
}

// Add adds a shard, which may be discarded afterward. The order of calls determines only the order of some lists, such
// as Seconds, and which error of a control group is kept.
func (g *Merger) Add(s *Shard) {
	m := &g.m
	if m.Connect == nil {
		m.Connect, m.FirstMessage, m.Lateness = NewHistogram(), NewHistogram(), NewHistogram()
		g.buckets, g.points, g.metrics = bucketSums{}, bucketSums{}, map[string]*Metric{}
	}
	m.Runners = append(m.Runners, s.Runner)
	m.Runners[len(m.Runners)-1].Machine = s.Machine
	m.addPublished(s)
	m.addControl(s)
	m.addCodings(s)
	m.addRedirects(s)
	mergePart(&m.Reach, s.Reach)
	mergePart(&m.HTTP2, s.HTTP2)
	mergePart(&m.EndRequests, s.EndRequests)
	mergePart(&m.Bursts, s.Bursts)
	g.addResponses(s)
	g.parts = append(g.parts, part{s.Plan, s.Suite, s.Service, slices.ContainsFunc(s.Metrics, s.Suite.isOther)})
	m.Connect.Merge(s.Connect)
	m.FirstMessage.Merge(s.FirstMessage)
	m.Lateness.Merge(s.Lateness)
	m.addLatency(s.Latency)
	m.Seconds = append(m.Seconds, s.Seconds...)
	m.addChecks(s.Checks)
	addMetrics(g.metrics, s.Metrics)
	m.Connections.adopt(len(m.Runners)-1, s)
	g.addSeries(s)
}

// AddUnreadable adds the error of a shard that cannot be read. It is the first problem, because it explains why a
// runner seems to be missing.
func (g *Merger) AddUnreadable(err error) { g.m.Problems = append(g.m.Problems, err.Error()) }

// mergePart adds a part of a shard to the sum of these parts. Either may be nil.
func mergePart[T any, P interface {
	*T
	Merge(other P)
}](sum *P, part P) {
	if part == nil {
		return
	}
	if *sum == nil {
		*sum = new(T)
	}
	(*sum).Merge(part)
}

// Merged returns the sum of all shards and compares it with the plan. If the plan has no clients, the scripts declare
// their streams. No shard may be added afterward.
func (g *Merger) Merged(p plan.Plan) *Merged {
	m := &g.m
	m.Plan = p
	g.sort(func(a, b int) int {
		return cmp.Or(cmp.Compare(m.Runners[a].Index, m.Runners[b].Index), cmp.Compare(m.Runners[a].StartedUS, m.Runners[b].StartedUS))
	})
	m.groups = []group{{plan: p, runners: len(m.Runners), plannedRunners: p.Runners}}
	m.checkRunners(g.parts)
	m.checkSuites(g.parts)
	m.checkDeclarations(g.parts)
	g.finish()
	if m.Plan.Connections > 0 {
		m.Problems = append(m.Problems, m.CheckConnections()...)
	} else {
		m.adoptPlan(g.parts)
	}
	return m
}

// finish sets the sums that Add keeps in maps, and adds the problems of unreadable series and responses.
func (g *Merger) finish() {
	m := &g.m
	if m.Connect == nil { // no shard was added
		m.Connect, m.FirstMessage, m.Lateness = NewHistogram(), NewHistogram(), NewHistogram()
	}
	m.Problems = append(m.Problems, g.readErrors...)
	m.Series, m.Metrics = g.buckets.buckets(&g.buffer), valuesByKey(g.metrics)
	if !g.lacksPoints {
		m.Points = g.points.buckets(&g.buffer)
	}
}

// sort sorts the runners, their parts and their records. compare receives indexes in Runners before the sort.
func (g *Merger) sort(compare func(a, b int) int) {
	m := &g.m
	order := make([]int, len(m.Runners))
	for i := range order {
		order[i] = i
	}
	if slices.IsSortedFunc(order, compare) {
		return
	}
	slices.SortStableFunc(order, compare)
	runners, parts, position := slices.Clone(m.Runners), slices.Clone(g.parts), make([]int, len(order))
	for to, from := range order {
		m.Runners[to], g.parts[to], position[from] = runners[from], parts[from], to
	}
	m.Connections.renumber(position)
}

func (m *Merged) problem(format string, args ...any) {
	m.Problems = append(m.Problems, fmt.Sprintf(format, args...))
}
