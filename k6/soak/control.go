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

// controlSilence is after how long a silent stream of the control group is given up, and controlConnect how long one may
// take to open.
const (
	controlSilence = 30 * time.Second
	controlConnect = 10 * time.Second
)

// A controlGroup holds a few streams to a reference target, for as long as the run lasts. What is late on them is not the
// service's fault. They are no connections of the run: nothing but this counts them.
type controlGroup struct {
	url     string
	limit   time.Duration // of lateness
	started time.Time
	client  *sseclient.Group
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu      sync.Mutex
	total   shard.Control       // its counts are those of the buckets that are over
	present shard.ControlCounts // of the present bucket
	recent  *time.Duration      // longest lateness since it was last published; nil: no event came
	streams []*controlStream
}

// A controlStream is a stream of the control group, opened again whenever it ends.
type controlStream struct {
	group   *controlGroup
	place   time.Duration   // when in a second it opens: the events of all are spread over the second
	account control.Account // of the present stream
	redial  chan struct{}   // it has ended
}

// newControlGroup opens the control group that the environment asks for; nil where it asks for none. Not every script
// states a plan.
func newControlGroup(environment map[string]string, late time.Duration) (*controlGroup, error) {
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
	late = cmp.Or(late, p.LateLimit())
	ctx, stop := context.WithCancel(context.Background())
	g := &controlGroup{
		url: p.ControlURL, limit: late, started: time.Now(), client: new(sseclient.Client).Group(ctx), stop: stop,
		total: shard.Control{URL: p.ControlURL, Streams: p.Control, LateMS: int(late.Milliseconds()), Remote: isRemote(p.ControlURL)},
	}
	for i := range p.Control {
		s := &controlStream{group: g, place: time.Duration(i) * control.Interval / time.Duration(p.Control), redial: make(chan struct{}, 1)}
		g.streams = append(g.streams, s)
		g.ended.Go(func() { s.hold(ctx) })
	}
	return g, nil
}

// isRemote reports whether the reference is on another machine.
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

var controlOptions = sseclient.Options{ConnectTimeout: controlConnect, IdleTimeout: controlSilence}

// hold opens the stream, and again a second after it has ended.
func (s *controlStream) hold(ctx context.Context) {
	on := sseclient.Callbacks{
		Request: func() sseclient.Request { return sseclient.Request{URL: s.group.url} }, Connecting: s.connecting,
		Opened: s.opened, Event: s.event, Closed: s.closed, Ended: func() { s.redial <- struct{}{} },
	}
	for s.await(ctx) {
		s.group.client.Add(&controlOptions, on).Start()
		<-s.redial
	}
	s.end()
}

// await waits for this stream's place in the next second; it returns false when ctx ends.
func (s *controlStream) await(ctx context.Context) bool {
	passed := time.Since(s.group.started) - s.place
	timer := time.NewTimer(control.Interval - (passed+control.Interval)%control.Interval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// connecting records when the stream is requested.
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

// closed records an attempt or a stream that failed, unless the group is being closed.
func (s *controlStream) closed(_ time.Time, c sseclient.Close) {
	if c.Reason != sseclient.ReasonInterrupted {
		g := s.group
		g.mu.Lock()
		count := &g.total.Refused
		if c.Opened {
			count = &g.total.Cut
		}
		*count++
		g.total.Error = cmp.Or(g.total.Error, strings.ToValidUTF8(fmt.Sprintf("%.200s", c.Message()), ""))
		g.mu.Unlock()
	}
	if c.Opened {
		s.end()
	}
}

// event is called by the goroutine that reads all streams.
func (s *controlStream) event(at time.Time, e *eventstream.Event) {
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	arrival, ok := s.account.Note(at, e.ID, e.Data)
	if !ok {
		return
	}
	g.total.Lost += arrival.Lost
	g.present.Note(arrival.Late, arrival.Reference, g.limit)
	if g.recent == nil || arrival.Late > *g.recent {
		g.recent = &arrival.Late
	}
}

// latest returns the longest lateness since the last call; nil if no event came, or without a group.
func (g *controlGroup) latest() *time.Duration {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	longest := g.recent
	g.recent = nil
	return longest
}

// end settles the messages that the present stream still expected.
func (s *controlStream) end() {
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.present.Expected += s.account.Due(now)
	g.total.Lost += s.account.Missing(now, max(g.limit, control.Interval))
	s.account = control.Account{}
}

// endBucket ends the present bucket and returns its counts; nil if there is no group.
func (g *controlGroup) endBucket(now time.Time) *shard.ControlCounts {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.streams {
		g.present.Expected += s.account.Due(now)
	}
	bucket := g.present
	g.present = shard.ControlCounts{}
	g.total.ControlCounts.Add(bucket)
	return &bucket
}

// result returns the counts of the group up to the last bucket, nil without a group.
func (g *controlGroup) result() *shard.Control {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.total
	return &all
}

// close ends the group.
func (g *controlGroup) close() {
	if g != nil {
		g.stop()
		g.ended.Wait()
		g.client.Close()
	}
}

// holdControl opens the control group of the run.
func (r *recorder) holdControl(environment map[string]string) error {
	plan := r.thePlan()
	group, err := newControlGroup(environment, plan.LateLimit())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.control = group
	return err
}
