package soak

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/publish"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A recorder holds what a runner sees: the ledger of each connection, and a time series of sums over
// all connections. Its memory grows with the connections, and by some hundred bytes for each bucket of
// five seconds.
type recorder struct {
	start time.Time // what instants count from; its monotonic reading is the clock of the run

	mu               sync.Mutex
	plan             plan.Plan
	planned          bool
	suite            *shard.Suite     // nil of a soak
	service          *service.Service // noop, if the script declares none
	described        bool             // the script called soak.service
	topics           []*topicReader
	config           ledger.Config
	ledgers          []*ledger.Ledger
	open             int
	series           []shard.Bucket // the buckets that are over; never changed, so that a shard can share them
	bucket           shard.Bucket
	recent           *shard.Histogram        // lateness in the present bucket
	recentHeld       *shard.Histogram        // of late messages of the streams that are held; nil: none was late yet
	asides           map[*ledger.Ledger]bool // those of the streams that are not
	lateness         *shard.Histogram        // in all
	connect          *shard.Histogram
	firstNoop        *shard.Histogram
	latency          *shard.Latency
	codings          []shard.Coding     // of streams that came compressed
	redirects        []shard.Redirect   // of streams to other origins
	shared           *shard.Shared      // of streams over HTTP/2; nil: there were none
	ends             *shard.Ends        // requests that end streams; nil: there were none
	reach            *shard.Reach       // nil where nothing is published
	publishing       *publish.Publisher // nil where another runner publishes, or nobody
	publishingAsked  bool
	publishingFailed error
	cutter           *cutter // nil where no stream is cut
	stopCutting      func()

	fastest  atomic.Int64 // the shortest latency, in nanoseconds
	oneClock atomic.Bool  // this process publishes

	names map[string]string           // of events that are no noops
	known atomic.Pointer[credentials] // of the environment; nil before the first stream

	telemetry *telemetry
	control   *controlGroup // nil: there is none; it has a lock of its own
}

func newRecorder() *recorder {
	r := &recorder{
		start: time.Now(), recent: shard.NewHistogram(), lateness: shard.NewHistogram(),
		connect: shard.NewHistogram(), firstNoop: shard.NewHistogram(),
	}
	r.bucket.Unix = bucketOf(r.start)
	r.configure()
	r.fastest.Store(math.MaxInt64)
	r.telemetry = newTelemetry(r)
	return r
}

func bucketOf(t time.Time) int64 {
	width := int64(shard.BucketWidth / time.Second)
	return t.Unix() / width * width
}

// setPlan stores the plan of the script. Each virtual user loads the script anew and has to state the same
// plan.
func (r *recorder) setPlan(p plan.Plan) error {
	checked := p
	if p.Connections == 0 { // as many as the options of the run say; see planIterations
		checked.Connections = max(p.ConnectionsPerVU*max(p.Runners, 1), p.Topics, p.LeastForCuts())
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

// configure says how ledgers count. It is called again when more is known; no ledger is made before all is.
func (r *recorder) configure() {
	p := &r.plan
	c := &r.config
	c.Interval, c.Late, c.Cuts, c.MaxOutage = p.Interval(), p.Late(), p.Cuts(), p.MaxLastOutage()
	if !r.described {
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
	default:
		c.Counting = ledger.Nothing
	}
	r.topics = make([]*topicReader, p.TopicCount())
	for k := range r.topics {
		r.topics[k] = &topicReader{
			Reader: s.Reader(p.MarkerOf(k)).Among(p.MarkerOf(k)[:len(p.Marker)+1]), service: s, number: k, silences: !c.IgnoresSilence,
			keepsIDs: s.Resume.Resumes() && (c.Counting != ledger.Noops || s.Resume.TakesID || s.Resume.GapHeader != ""),
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

// connections is how many the plan has, over all runners; 0 if it does not say.
func (r *recorder) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plan.Connections
}

// noun is what the service calls a message.
func (r *recorder) noun() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.service.Message.Noun
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

func (r *recorder) instant(t time.Time) ledger.Instant { return t.Sub(r.start) }

func (r *recorder) opened(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open++
	r.bucket.Opened++
	r.connect.Record(took)
}

func (r *recorder) closed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	r.bucket.Closed++
}

// noop adds one arrival to the sums. first is the time since the headers for the first noop
// of a stream, else negative; latency is receive − send where hasLatency. aside is of a stream that is not held.
func (r *recorder) noop(a ledger.Arrival, aside, faulty bool, first time.Duration, latency time.Duration, hasLatency bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.Counted {
		r.bucket.Noops++
	}
	if faulty {
		r.bucket.Faults++
	}
	r.bucket.Late += a.Late
	for _, late := range a.Lateness[:a.N] {
		r.recent.Record(late)
		r.lateness.Record(late)
	}
	if a.Late > 0 && !aside {
		r.heldLate(&a)
	}
	if first >= 0 {
		r.firstNoop.Record(first)
	}
	if hasLatency {
		r.addLatency(latency)
	}
}

// heldLate counts what came late on a stream that is held apart from the others.
//
//go:noinline // rare, and not to grow the stack of a reading goroutine
func (r *recorder) heldLate(a *ledger.Arrival) {
	if r.recentHeld == nil {
		r.recentHeld = shard.NewHistogram()
	}
	if r.bucket.Held == nil {
		r.bucket.Held = &shard.Late{}
	}
	r.bucket.Held.Late += a.Late
	for _, late := range a.Lateness[:a.N] {
		r.recentHeld.Record(late)
	}
}

// latencyStep is the distance from zero at which latencies are kept if the clocks differ. The buckets of a
// histogram are 0.8 % of a value wide, so values have to stay near zero.
const latencyStep = 10 * time.Millisecond

// addLatency keeps latencies as they are if the clocks agree. Otherwise it adds an offset to them, which
// it changes whenever a noop is faster than all before.
func (r *recorder) addLatency(latency time.Duration) {
	if r.latency == nil {
		r.latency = &shard.Latency{MinUS: latency.Microseconds(), Histogram: shard.NewHistogram()}
		if latency < 0 || latency > time.Second {
			r.latency.OffsetUS = (latencyStep - latency).Microseconds()
		}
	}
	r.latency.MinUS = min(r.latency.MinUS, latency.Microseconds())
	offset := time.Duration(r.latency.OffsetUS) * time.Microsecond
	if latency+offset < 0 {
		lower := latencyStep - latency
		shifted := shard.NewHistogram()
		shifted.MergeShifted(r.latency.Histogram, lower-offset)
		r.latency.Histogram, offset = shifted, lower.Truncate(time.Microsecond)
		r.latency.OffsetUS = lower.Microseconds()
	}
	r.latency.Histogram.Record(latency + offset)
}

// wall is the wall clock at the start plus the time since, so that a step of the clock leaves no gap in the
// series.
func (r *recorder) wall(now time.Time) time.Time { return r.start.Add(now.Sub(r.start)).Round(0) }

func (r *recorder) bucketOver(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bucketOf(r.wall(now)) != r.bucket.Unix
}

// roll ends the present bucket. Its histogram is kept with coarser buckets, since a run of hours has
// thousands of them.
func (r *recorder) roll(now time.Time, s shard.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := bucketOf(r.wall(now))
	r.bucket.Open, r.bucket.Process, r.bucket.Control = r.open, s, r.control.take(now)
	if r.recent.Count() > 0 {
		r.bucket.Lateness = r.recent.PackCoarse()
		r.recent.Reset()
	}
	r.bucket.Held = r.takeHeld()
	r.series = append(r.series, r.bucket)
	r.bucket = shard.Bucket{Unix: next}
}

// takeHeld is what was late on held streams in the bucket that ends; nil where all streams are, or none was late.
func (r *recorder) takeHeld() *shard.Late {
	held := r.bucket.Held
	if held != nil {
		held.LateBy = r.recentHeld.PackCoarse()
		r.recentHeld.Reset()
	}
	switch {
	case len(r.asides) == 0 || r.bucket.Late == 0:
		return nil
	case held == nil:
		return &shard.Late{}
	}
	return held
}

// fill copies everything seen so far into a shard, but for the ledgers, which go on.
func (r *recorder) fill(s *shard.Shard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Plan, s.Suite = r.plan, r.suite
	if r.planned { // otherwise the script opens no streams
		s.Service = shard.ServiceOf(r.service)
	}
	s.Reach, s.Published, s.Control = r.reach.Copy(), r.published(), r.control.seen()
	s.Codings, s.Redirects = slices.Clone(r.codings), slices.Clone(r.redirects)
	if r.shared != nil {
		shared := *r.shared
		s.Shared = &shared
	}
	s.Ends = r.ends.Copy()
	s.Series = r.series[:len(r.series):len(r.series)]
	s.Lateness, s.Connect, s.FirstNoop = r.lateness.Copy(), r.connect.Copy(), r.firstNoop.Copy()
	if r.latency != nil {
		l := *r.latency
		l.Histogram = r.latency.Histogram.Copy()
		s.Latency = &l
	}
	s.Ledgers = r.ledgers[:len(r.ledgers):len(r.ledgers)]
}

// progress sums up the present state, for the metrics, and copies the lateness of all noops.
func (r *recorder) progress() (p shard.Progress, lateness *shard.Histogram) {
	r.mu.Lock()
	lateness = r.lateness.Copy()
	r.mu.Unlock()
	r.lookThrough(&p, func(string) bool { return false }, func(c *ledger.Record, _ bool) { p.Count(c) })
	return p, lateness
}

// lookThrough sums up the present state but for what count makes of the sums of a connection that is not steady, or was known by
// its id: it is told whether the script does something to that.
func (r *recorder) lookThrough(p *shard.Progress, known func(id string) bool, count func(c *ledger.Record, aside bool)) {
	r.mu.Lock()
	p.Open = r.open
	ledgers, asides, owed := r.ledgers, maps.Clone(r.asides), dueBy(r.instant(time.Now()), &r.config)
	if r.publishing != nil {
		now := r.publishing.Progress()
		p.Published, p.Confirmed = now.Sent, now.Confirmed
	}
	r.mu.Unlock()
	var sums ledger.Record // one for all: it is told to functions that are not known here, and so lies on the heap
	for _, l := range ledgers {
		if s, ok := l.Steady(); ok && !known(l.ID()) {
			p.CountSteady(s)
			p.Undecided += owed(s.LastAt)
			continue
		}
		if sums = l.Sums(); sums.State == ledger.Open {
			p.Undecided += owed(sums.LastAt)
		}
		count(&sums, asides[l])
	}
}
