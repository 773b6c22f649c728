package soak

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/publish"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A recorder holds all that a runner observes: the plan that its script states, the ledger of each connection, what it publishes,
// and a tally over all connections. mu guards all but the tally, which has a lock of its own: readers of streams take only that.
type recorder struct {
	tally
	telemetry *telemetry

	mu          sync.Mutex
	plan        plan.Plan
	planned     bool
	suite       *shard.Suite     // nil of a soak
	service     *service.Service // noop, if the script declares none
	declared    bool             // the script called soak.service
	topics      []*topicReader
	config      ledger.Config
	ledgers     []*ledger.Ledger
	names       map[string]string           // of events that are not messages
	credentials atomic.Pointer[credentials] // of the environment; nil before the first stream
	control     *controlGroup               // nil: there is none; it has a lock of its own
	responses   *responses                  // that end by themselves; nil: there are none; it has a lock of its own
	publication
	cutter      *cutter // nil where no stream is cut
	stopCutting func()
}

// A publication is what a runner publishes, and how its messages arrived. The recorder's mu guards it.
type publication struct {
	reach            *shard.Reach       // nil if nothing is published
	publishing       *publish.Publisher // nil if another runner publishes, or none
	publishRequested bool
	publishingFailed error
	fastest          atomic.Int64 // the shortest latency, in nanoseconds
	oneClock         atomic.Bool  // this process publishes
}

func newRecorder() *recorder {
	r := &recorder{tally: newTally()}
	r.configure()
	r.fastest.Store(math.MaxInt64)
	r.telemetry = newTelemetry(r)
	return r
}

// setPlan stores the plan of the script. Each virtual user loads the script anew and has to state the same
// plan.
func (r *recorder) setPlan(p plan.Plan) error {
	checked := p
	if p.Connections == 0 { // as many as the options of the run say; see planIterations
		checked.Connections = max(p.ConnectionsPerVU*max(p.Runners, 1), p.Topics, p.MinStreamsForCuts())
	}
	if err := checked.Check(); err != nil {
		return err
	}
	p.BackendURL = strings.Join(p.BackendURLs(), ",")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.planned && p.Marker == "" {
		p.Marker = r.plan.Marker
	}
	if r.planned && p.Connections == 0 {
		p.Connections = r.plan.Connections
	}
	if r.planned && !reflect.DeepEqual(r.plan, p) {
		return fmt.Errorf("soak.plan was called with two different plans: %+v and %+v", r.plan, p)
	}
	r.plan, r.planned = p, true
	r.configure()
	return nil
}

// configure sets how ledgers count. It is called again as settings become known; ledgers are made after the last call.
func (r *recorder) configure() {
	p := &r.plan
	c := &r.config
	c.Interval, c.Late, c.Cuts, c.MaxOutage = p.Interval(), p.LateLimit(), p.Cuts(), p.MaxLastOutage()
	if !r.declared {
		r.service = service.Noop(p.Interval())
	}
	s := r.service
	if r.planned && p.Marker == "" && s.Marks() { // k6 alone: soak would have drawn one
		p.Marker = cmp.Or(p.TestID, p.Prefix)
	}
	c.IgnoresSilence = !s.MeasuresSilence()
	c.AnyOrder, c.Repeats, c.Published = s.Message.AnyOrder, s.Message.AtLeastOnce, p.Published()
	c.Resumes = s.Resume.Resumes()
	c.ClientEnds, c.Lifetime, c.Longest = s.End.By != service.ByRequest, s.End.Shortest, s.End.Longest
	if p.TokenTTL > 0 {
		c.Lifetime = time.Nanosecond // a service may end a stream before its token is over: Mercure does
	}
	switch {
	case s.Message.Interval > 0:
		c.Counting, c.Interval = ledger.Noops, s.Message.Interval
	case s.Message.Numbered:
		c.Counting = ledger.Numbered
	case s.Message.Shared: // order and expected messages are known at the end of the run
		c.Counting, c.Published, c.AnyOrder = ledger.Numbered, true, true
	default:
		c.Counting = ledger.Nothing
	}
	r.topics = make([]*topicReader, p.TopicCount())
	for k := range r.topics {
		r.topics[k] = &topicReader{
			Reader: s.Reader(p.MarkerOf(k)).WithFamily(p.MarkerOf(k)[:len(p.Marker)+1]), service: s, number: k, silences: !c.IgnoresSilence,
			keepsIDs: s.Resume.Resumes() && (c.Counting != ledger.Noops || s.Resume.SendsReadingID || s.Resume.GapHeader != ""),
		}
	}
	for _, t := range r.topics {
		if s.Message.Shared {
			t.log = ledger.NewLog()
		}
	}
	if p.Published() && r.reach == nil {
		most := int(math.Ceil(p.PublishRate*p.Hold().Seconds()/float64(p.Topics))) + 1
		c.Most, r.reach = clamp.Uint64(most), shard.NewReach(p.Topics, most)
	}
}

// thePlan is a copy of the plan.
func (r *recorder) thePlan() plan.Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plan
}

// sinceSent is how late a message is that came so long after it was sent. The clock of another process may differ from
// ours: where it plainly does, a message counts as late by how much slower it was than the fastest one.
func (r *recorder) sinceSent(latency time.Duration) time.Duration {
	if r.oneClock.Load() {
		return max(latency, 0)
	}
	fastest := r.fastest.Load()
	for int64(latency) < fastest && !r.fastest.CompareAndSwap(fastest, int64(latency)) {
		fastest = r.fastest.Load()
	}
	fastest = min(fastest, int64(latency))
	if fastest >= 0 && fastest <= int64(time.Second) {
		return latency
	}
	return latency - time.Duration(fastest)
}

// reached notes how long after it was sent a message came.
func (r *recorder) reached(topic int, number uint64, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reach != nil {
		r.reach.Note(topic, number, late)
	}
}

// planIterations fills in the planned connections where only k6's options tell them, as with
// `k6 run --iterations 600`.
func (r *recorder) planIterations(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.planned && r.plan.Connections == 0 {
		r.plan.Connections = int(n) * r.plan.ConnectionsPerVU
	}
}

func (r *recorder) newLedger(id string) (*ledger.Ledger, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.planned {
		return nil, fmt.Errorf("a Ledger needs to know the noop interval: call soak.plan in the init context first")
	}
	l := ledger.New(id, &r.config)
	r.ledgers = append(r.ledgers, l)
	return l, nil
}

// fill copies all data so far into a shard, except the ledgers, which continue to count.
func (r *recorder) fill(s *shard.Shard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Plan, s.Suite = r.plan, r.suite
	s.Responses = r.responses.copy()
	if r.planned || r.service != nil && r.service.Finite != nil { // otherwise the script opens no streams
		s.Service = shard.ServiceOf(r.service)
	}
	s.Reach, s.Published, s.Control = r.reach.Copy(), r.published(), r.control.result()
	r.tally.fill(s)
	s.Ledgers = r.ledgers[:len(r.ledgers):len(r.ledgers)]
	for _, t := range r.topics {
		s.AddFeed(t.log)
	}
}

// progress sums up the present state, for the metrics, and copies the lateness of all noops.
func (r *recorder) progress() (p shard.Progress, lateness *shard.Histogram) {
	r.tally.mu.Lock()
	lateness = r.lateness.Copy()
	r.tally.mu.Unlock()
	r.sumUp(&p, func(string) bool { return false }, func(c *ledger.Record, _ bool) { p.Count(c) })
	return p, lateness
}

// sumUp sums up the present state. It calls count, with whether the script acts on the connection, for each connection that is not
// steady or that known names.
func (r *recorder) sumUp(p *shard.Progress, known func(id string) bool, count func(c *ledger.Record, excluded bool)) {
	r.tally.mu.Lock()
	p.Open = r.open
	excluded := maps.Clone(r.excluded)
	r.tally.mu.Unlock()
	r.mu.Lock()
	now := r.instant(time.Now())
	ledgers, expected := r.ledgers, dueBy(now, &r.config)
	if r.publishing != nil {
		sums := r.publishing.Progress()
		p.Published, p.Confirmed = sums.Sent, sums.Confirmed
	}
	r.mu.Unlock()
	var sums ledger.Record // one for all: it escapes to the heap through count
	for _, l := range ledgers {
		if s, ok := l.Steady(); ok && !known(l.ID()) {
			p.CountSteady(s)
			p.Undecided += expected(s.LastAt)
			continue
		}
		if sums = l.Sums(); sums.State == ledger.Open {
			p.Undecided += expected(sums.LastAt)
		}
		skipped, due := l.Lag(now)
		sums.Lost += skipped
		p.Undecided += due
		count(&sums, excluded[l])
	}
}
