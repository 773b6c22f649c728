package soak

import (
	"cmp"
	"errors"
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

// A recorder holds the data of a runner: the plan of its script, the ledger of each client, the published messages, and
// a tally of all streams. mu guards the fields below it, except the atomic ones; the tally has its own lock.
// While a stream is open, its reader locks mu only to note published messages and names of events.
type recorder struct {
	tally
	telemetry *telemetry
	gate      *startGate // nil: no other runner to wait for

	mu          sync.Mutex
	plan        plan.Plan
	hasPlan     bool
	suite       *shard.Suite     // nil for a soak
	service     *service.Service // noop if the script declares none
	hasService  bool             // the script called soak.service
	topics      []*topicReader
	config      ledger.Config
	ledgers     []*ledger.Ledger
	names       map[string]string           // of events that are not messages
	credentials atomic.Pointer[credentials] // secrets of the environment; nil before the first stream
	control     *controlGroup               // nil: none; has its own lock
	responses   *responses                  // of finite streams; nil: none; has its own lock
	publication
	cutter     *cutter // nil: no stream is cut
	stopCutter func()
	isStarted  bool  // begin has started the planned cutter and publisher, or has failed
	startErr   error // of begin
}

// A publication holds the publisher of a runner, and the arrivals of published messages on its streams. The mu of the
// recorder guards all but the atomic fields.
type publication struct {
	reach       *shard.Reach       // nil if no messages are published
	publisher   *publish.Publisher // nil if this runner does not publish
	minLatency  atomic.Int64       // smallest latency in nanoseconds; math.MaxInt64 before the first message
	sharesClock atomic.Bool        // the publisher is on this machine, so send and receive times have the same clock
}

func newRecorder() *recorder {
	r := &recorder{tally: newTally()}
	r.configure()
	r.minLatency.Store(math.MaxInt64)
	r.telemetry = newTelemetry(r)
	return r
}

// setPlan stores the plan of the script. Each virtual user loads the script and must set the same plan.
func (r *recorder) setPlan(p plan.Plan) error {
	checked := p
	if p.Connections == 0 { // planIterations sets the number later
		checked.Connections = max(p.ConnectionsPerVU*max(p.Runners, 1), p.Topics, p.MinStreamsForCuts())
	}
	if err := checked.Check(); err != nil {
		return err
	}
	p.BackendURL = strings.Join(p.BackendURLs(), ",")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasPlan && p.Marker == "" {
		p.Marker = r.plan.Marker
	}
	if r.hasPlan && p.Connections == 0 {
		p.Connections = r.plan.Connections
	}
	if r.hasPlan && !reflect.DeepEqual(r.plan, p) {
		return fmt.Errorf("the script sets two different plans: %+v and %+v", r.plan, p)
	}
	r.plan, r.hasPlan = p, true
	r.configure()
	return nil
}

// configure derives the configuration of ledgers, the readers of topics and reach from plan and service. It also sets
// the default service, noop, and the marker of the plan. setPlan and setService call it again, but not after the first
// ledger.
func (r *recorder) configure() {
	p := &r.plan
	c := &r.config
	c.Interval, c.LatenessLimit, c.Cuts, c.MaxOutage = p.Interval(), p.LateLimit(), p.HasCuts(), p.MaxLastOutage()
	if !r.hasService {
		r.service = service.Noop(p.Interval())
	}
	s := r.service
	if r.hasPlan && p.Marker == "" && s.Marks() { // k6 runs without soak, which sets a random marker
		p.Marker = cmp.Or(p.TestID, p.Prefix)
	}
	c.IgnoresSilence = s.MatchesBackend() // the times between noops show the silence
	c.AnyOrder, c.Repeats, c.Published = s.Message.AnyOrder, s.Message.AtLeastOnce, p.Published()
	c.Resumes, c.PerStream = s.Resume.Resumes(), !s.Message.PerTopic
	c.ClientEnds, c.Lifetime, c.MaxLifetime = s.End.By != service.ByRequest, s.End.Shortest, s.End.Longest
	if p.TokenTTL > 0 {
		c.Lifetime = time.Nanosecond // a service may end a stream at any time because of its token, as Mercure does
	}
	switch {
	case s.Message.Interval > 0:
		c.Counting, c.Interval = ledger.Noops, s.Message.Interval
	case s.Message.Numbered:
		c.Counting = ledger.Numbered
	case s.Message.Shared: // the merge determines order and expected messages
		c.Counting, c.Published, c.AnyOrder = ledger.Numbered, true, true
	default:
		c.Counting = ledger.Nothing
	}
	r.topics = make([]*topicReader, p.TopicCount())
	for k := range r.topics {
		r.topics[k] = &topicReader{
			Reader: s.Reader(p.MarkerOf(k)).WithFamily(p.MarkerOf(k)[:len(p.Marker)+1]), service: s, number: k, tracksSilence: !c.IgnoresSilence,
			keepsIDs: s.Resume.Resumes() && (c.Counting != ledger.Noops || s.Resume.SendsReadingID || s.Resume.GapHeader != ""),
		}
		if s.Message.Shared {
			r.topics[k].log = ledger.NewLog()
		}
	}
	if p.Published() && r.reach == nil {
		limit := int(math.Ceil(p.PublishRate*p.Hold().Seconds()/float64(p.Topics))) + 1
		c.MaxNumber, r.reach = clamp.Uint64(limit), shard.NewReach(p.Topics, limit)
	}
}

func (r *recorder) planCopy() plan.Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plan
}

// latenessOf returns the lateness of a message with the given latency: normally the latency itself. If the clocks of
// sender and receiver clearly differ, it is the difference from the latency of the fastest message.
func (r *recorder) latenessOf(latency time.Duration) time.Duration {
	if r.sharesClock.Load() {
		return max(latency, 0)
	}
	fastest := r.minLatency.Load()
	for int64(latency) < fastest && !r.minLatency.CompareAndSwap(fastest, int64(latency)) {
		fastest = r.minLatency.Load()
	}
	fastest = min(fastest, int64(latency))
	if fastest >= 0 && fastest <= int64(time.Second) {
		return latency
	}
	return latency - time.Duration(fastest)
}

func (r *recorder) noteReach(topic int, number uint64, lateness time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reach != nil {
		r.reach.Record(topic, number, lateness)
	}
}

// planIterations sets the number of planned streams, if the plan has none, from an option of k6 such as --iterations.
func (r *recorder) planIterations(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasPlan && r.plan.Connections == 0 {
		r.plan.Connections = int(n) * r.plan.ConnectionsPerVU
	}
}

// newLedger returns a new ledger of a client. It returns an error if the script has set no plan.
func (r *recorder) newLedger(id string) (*ledger.Ledger, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hasPlan {
		return nil, errors.New("the script has no plan; call soak.plan or soak.settings in the init context first")
	}
	l := ledger.New(id, &r.config)
	r.ledgers = append(r.ledgers, l)
	return l, nil
}

// progress returns the current sums for the metrics, and a copy of the lateness of all messages.
func (r *recorder) progress() (p shard.Progress, lateness *shard.Histogram) {
	r.tally.mu.Lock()
	lateness = r.lateness.Copy()
	r.tally.mu.Unlock()
	r.sumUp(&p, func(string) bool { return false }, func(c *ledger.Record, _ bool) { p.Count(c) })
	return p, lateness
}

// sumUp adds the current state to p. It adds steady clients itself, unless known returns true for their id. For every
// other client it calls count, whose argument c is valid only during the call. excluded reports whether the script acts
// on the client.
func (r *recorder) sumUp(p *shard.Progress, known func(id string) bool, count func(c *ledger.Record, excluded bool)) {
	r.tally.mu.Lock()
	p.Open = r.open
	excluded := maps.Clone(r.excluded)
	r.tally.mu.Unlock()
	r.mu.Lock()
	now := r.instant(time.Now())
	ledgers, undecided := r.ledgers, undecidedNoops(now, &r.config)
	if r.publisher != nil {
		sums := r.publisher.Sums()
		p.Published, p.Confirmed = sums.Sent, sums.Confirmed
	}
	r.mu.Unlock()
	var sums ledger.Record // reused, because it escapes to the heap through count
	for _, l := range ledgers {
		if s, ok := l.Steady(); ok && !known(l.ID()) {
			p.CountSteady(s)
			p.Undecided += undecided(s.LastAt)
			continue
		}
		if sums = l.Sums(); sums.State == ledger.Open {
			p.Undecided += undecided(sums.LastAt)
		}
		skipped, due := l.Lag(now)
		sums.Lost += skipped
		p.Undecided += due
		count(&sums, excluded[l])
	}
}
