package soak

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/control"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

const (
	controlIdleTimeout    = 30 * time.Second
	controlConnectTimeout = 10 * time.Second
)

// A controlGroup keeps a few streams to a reference server open during the run. The service under test cannot delay
// their events. These streams do not count as streams of the run.
type controlGroup struct {
	url        string
	limit      time.Duration // of lateness
	started    time.Time
	client     *sseclient.Group
	stop       context.CancelFunc
	goroutines sync.WaitGroup

	mu          sync.Mutex
	total       shard.Control       // its ControlCounts exclude the current bucket
	bucket      shard.ControlCounts // of the current bucket
	maxLateness *time.Duration      // since the last call of takeMaxLateness; nil: no event arrived
	streams     []*controlStream
}

// A controlStream is a stream of the control group that reopens whenever it ends.
type controlStream struct {
	group   *controlGroup
	offset  time.Duration   // time within a second at which the stream opens; spreads the events of all streams
	account control.Account // of the current stream
	redial  chan struct{}   // has a value when the stream has ended
}

// newControlGroup opens the control group that the environment defines. It returns nil if the environment defines none.
// It reads the environment, because not every script declares a plan. LATE_MS of soak's plan, or its default, replaces
// a limit of 0.
func newControlGroup(environment map[string]string, limit time.Duration) (*controlGroup, error) {
	source, err := plan.SourceOf(func(name string) string { return environment[name] })
	if err != nil {
		return nil, err
	}
	p := source.Base()
	err = p.ReadEnvironment(func(name string) string {
		if strings.HasPrefix(name, "CONTROL") {
			return source.Setting(name)
		}
		return "" // a suite may have a setting of the same name
	})
	if err != nil || p.Control <= 0 || p.ControlURL == "" {
		return nil, err
	}
	if err := p.CheckControl(); err != nil {
		return nil, err
	}
	limit = cmp.Or(limit, p.LateLimit())
	ctx, stop := context.WithCancel(context.Background())
	g := &controlGroup{
		url: p.ControlURL, limit: limit, started: time.Now(), client: new(sseclient.Client).Group(ctx), stop: stop,
		total: shard.Control{URL: p.ControlURL, Streams: p.Control, LateMS: int(limit.Milliseconds()), Remote: isRemote(p.ControlURL)},
	}
	for i := range p.Control {
		s := &controlStream{group: g, offset: time.Duration(i) * control.Interval / time.Duration(p.Control), redial: make(chan struct{}, 1)}
		g.streams = append(g.streams, s)
		g.goroutines.Go(func() { s.run(ctx) })
	}
	return g, nil
}

// isRemote reports whether the reference server is on another machine. It returns true for every host name but
// localhost.
func isRemote(rawURL string) bool {
	u, err := url.Parse(rawURL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	if ip == nil || ip.IsLoopback() {
		return ip == nil && u.Hostname() != "localhost"
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, address := range addrs {
		if n, ok := address.(*net.IPNet); ok && n.IP.Equal(ip) {
			return false
		}
	}
	return true
}

var controlCallbacks = sseclient.Callbacks{
	Request: func(s *sseclient.Stream) sseclient.Request {
		return sseclient.Request{URL: controlStreamOf(s).group.url}
	},
	Connecting: func(s *sseclient.Stream, at time.Time) { controlStreamOf(s).connecting(at) },
	Opened:     forward(controlStreamOf, (*controlStream).opened), Event: forward(controlStreamOf, (*controlStream).event),
	Closed: forward(controlStreamOf, (*controlStream).closed),
	Ended:  func(s *sseclient.Stream) { controlStreamOf(s).redial <- struct{}{} },
}

func controlStreamOf(s *sseclient.Stream) *controlStream { return s.Value().(*controlStream) }

var controlOptions = sseclient.Options{ConnectTimeout: controlConnectTimeout, IdleTimeout: controlIdleTimeout}

func (s *controlStream) run(ctx context.Context) {
	for s.await(ctx) {
		s.group.client.Add(&controlOptions, &controlCallbacks, s).Start()
		<-s.redial
	}
	s.end()
}

// await waits until the next time at which the stream may open; see offset. It returns false when ctx ends.
func (s *controlStream) await(ctx context.Context) bool {
	elapsed := time.Since(s.group.started) - s.offset
	return sleep(ctx, control.Interval-(elapsed+control.Interval)%control.Interval) && ctx.Err() == nil
}

func (s *controlStream) connecting(at time.Time) {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	s.account.RequestedAt = at
}

func (s *controlStream) opened(time.Time, *sseclient.Response) {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	s.group.total.Opened++
}

// closed records an attempt or a stream that failed, unless the group is being closed. It also ends the account of a
// stream that had opened.
func (s *controlStream) closed(_ time.Time, c sseclient.Close) {
	if c.Reason != sseclient.ReasonInterrupted {
		g := s.group
		g.mu.Lock()
		count := &g.total.Refused
		if c.Opened {
			count = &g.total.EndedEarly
		}
		*count++
		g.total.Error = cmp.Or(g.total.Error, strings.ToValidUTF8(fmt.Sprintf("%.200s", c.Message()), ""))
		g.mu.Unlock()
	}
	if c.Opened {
		s.end()
	}
}

func (s *controlStream) event(at time.Time, e *eventstream.Event) {
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	arrival, ok := s.account.Note(at, e.ID, e.Data)
	if !ok {
		return
	}
	g.total.Lost += arrival.Lost
	g.bucket.CountEvent(arrival.Late, arrival.Reference, g.limit)
	if g.maxLateness == nil || arrival.Late > *g.maxLateness {
		g.maxLateness = &arrival.Late
	}
}

// takeMaxLateness returns the longest lateness since the last call, nil if no event arrived or g is nil.
func (g *controlGroup) takeMaxLateness() *time.Duration {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	longest := g.maxLateness
	g.maxLateness = nil
	return longest
}

// end counts the due and the missing events of the stream that has ended.
func (s *controlStream) end() {
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.bucket.Expected += s.account.Due(now)
	g.total.Lost += s.account.Missing(now, max(g.limit, control.Interval))
	s.account = control.Account{}
}

// endBucket ends the current bucket and returns its counts, nil if g is nil.
func (g *controlGroup) endBucket(now time.Time) *shard.ControlCounts {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.streams {
		g.bucket.Expected += s.account.Due(now)
	}
	bucket := g.bucket
	g.bucket = shard.ControlCounts{}
	g.total.ControlCounts.Add(bucket)
	return &bucket
}

// result returns the counts of the group, nil if g is nil. Its ControlCounts do not include the current bucket.
func (g *controlGroup) result() *shard.Control {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.total
	return &all
}

func (g *controlGroup) close() {
	if g != nil {
		g.stop()
		g.goroutines.Wait()
		g.client.Close()
	}
}

func (r *recorder) openControl(environment map[string]string) error {
	plan := r.planCopy()
	group, err := newControlGroup(environment, plan.LateLimit())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.control = group
	return err
}
