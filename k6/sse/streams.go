package sse

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/network"
	"github.com/sse-soak/sse-soak/k6/sse/coding"
	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// An Opener opens event streams in Go for one virtual user. A Stream has all that an EventSource has, by the same code, and nothing
// of JS: thousands of them cost a third less.
type Opener struct{ m *module }

// NewOpener belongs into the init context, where metrics are registered.
func NewOpener(vu modules.VU) *Opener {
	return &Opener{&module{vu: vu, metrics: registerMetrics(vu)}}
}

// StreamsOptions are the options of an EventSource that many streams have in common.
type StreamsOptions struct {
	Name        string // the tag `name` of their samples
	Method      string // their tag `method`; "" for GET
	IdleTimeout time.Duration
	Reconnect   bool
	// MaxEventSize is as the option of an EventSource; 0 for its default.
	MaxEventSize int
	// AcceptEncoding is as the option of an EventSource: none, gzip or browser; "" for none.
	AcceptEncoding string
	// HTTP is as the option http of an EventSource: auto, 1.1 or 2; "" for auto.
	HTTP          string
	PerConnection uint16 // streams that may share a connection over HTTP/2; 0: as many as the server allows
	// FollowRedirects is as the option of an EventSource.
	FollowRedirects bool
	NoResume        bool   // the last event ID is not sent
	ResumeQuery     string // it is sent as this parameter; "" for the header
	// Renew is called on the event loop before each attempt but the first, so that it may call JS; nil where there is nothing
	// to renew. An error ends the stream with ReasonRenew.
	Renew func(Keeper) error
	// Opened is called when a stream has opened, after a dial that began at begun; Closed when a stream or an attempt at one has
	// ended. The reader calls them after the observer: they must not block. nil if not needed.
	Opened func(k Keeper, begun, at time.Time)
	Closed func(k Keeper, at time.Time, c Close)
}

// Streams are event streams of one iteration with the same options. The iteration lasts until Over.
type Streams struct {
	hub  *hub
	opts sourceOptions
}

// Streams begins some. On the event loop.
func (o *Opener) Streams(options StreamsOptions) (*Streams, error) {
	accept, err := coding.Setting(cmp.Or(options.AcceptEncoding, "none"))
	if err != nil {
		return nil, fmt.Errorf("option %s: %w", acceptOption, err)
	}
	sharing := sharing{perConnection: options.PerConnection}
	if err := sharing.speak(cmp.Or(options.HTTP, "auto")); err != nil {
		return nil, fmt.Errorf("option http: %w", err)
	}
	state := network.State(o.m.vu, ImportPath)
	g := &Streams{hub: o.m.currentHub()}
	g.hub.open++
	g.opts.setDefaults()
	g.opts.tags, g.opts.maxRedirects = state.Tags.GetCurrentValues(), int32(redirectLimit(state)) //nolint:gosec // G115: k6 bounds the option
	g.opts.idleTimeout, g.opts.reconnect = options.IdleTimeout, reconnectOff
	g.opts.sharing, g.opts.followRedirects = sharing, options.FollowRedirects
	if options.MaxEventSize > 0 {
		g.opts.maxEventSize = int32(min(options.MaxEventSize, math.MaxInt32))
	}
	if options.Reconnect {
		g.opts.reconnect = reconnectStubborn
	}
	rare := rareOptions{accept: accept, resume: resumeBy{none: options.NoResume, query: options.ResumeQuery}, renewInGo: options.Renew, opened: options.Opened, closed: options.Closed}
	if accept != "" || rare.resume != (resumeBy{}) || rare.renewInGo != nil || rare.opened != nil || rare.closed != nil {
		g.opts.rare = &rare
	}
	g.opts.tags.SetTag(metrics.TagName.String(), options.Name)
	describeRequest(&g.opts.tags, state.Options.SystemTags, nil, cmp.Or(options.Method, http.MethodGet))
	return g, nil
}

// Over lets the iteration end, once each stream has, and calls then on the event loop. From any goroutine.
func (g *Streams) Over(then func() error) {
	g.hub.post(func() error {
		g.hub.open--
		return then()
	})
}

// OnLoop runs a function on the event loop. An error of it aborts the iteration. From any goroutine, before Over.
func (g *Streams) OnLoop(f func() error) { g.hub.post(f) }

// Push queues samples of the iteration for k6. It does not wait. From any goroutine, before Over.
func (g *Streams) Push(samples ...metrics.Sample) { g.hub.push(samples...) }

// A Keeper has a Stream. Its methods must not block.
type Keeper interface {
	// Request is what the next attempt sends. It is called by the goroutine that makes the attempt.
	Request() Request
	// Ended is the last call of all, after the observer's last Closed, or before its first Connecting where the stream was closed
	// before its turn to dial came.
	Ended()
}

// A Stream is an EventSource without its JS half.
type Stream struct {
	source
	keeper Keeper
}

var _ client = (*Stream)(nil)

// Add makes a stream, which Open then opens. then makes its second request; nil where it has none.
func (g *Streams) Add(o Observer, k Keeper, then SecondRequester) *Stream {
	s := &Stream{keeper: k}
	s.hub, s.client, s.opts = g.hub, s, &g.opts
	if then != nil {
		own := g.opts
		rare := *own.rarely()
		rare.then = &secondRequest{inGo: then, timeout: own.connectTimeout}
		own.rare = &rare
		s.opts = &own
	}
	s.start(o)
	s.hub.know(&s.source)
	return s
}

// Open opens the stream: it returns when its turn to dial has come, so that who opens thousands has no goroutine for each that
// waits. Not on the event loop.
func (s *Stream) Open() {
	if at, ok := s.await(); ok {
		go s.attempt(at)
	}
}

// Close ends the stream for good. From any goroutine; the Keeper is told when it has ended.
func (s *Stream) Close() { s.stop(ReasonClient) }

// Drop closes the open stream and connects again with the last event ID, at once or after the reconnection time. It returns
// false if no stream is open. From any goroutine, as Vanish and Slow.
func (s *Stream) Drop(atOnce bool) bool { return s.drop(atOnce) }

// Vanish leaves the open stream half-open, as a machine does that is gone. It returns false if no stream is open.
func (s *Stream) Vanish() (bool, error) { return s.vanish() }

// Slow reads the open stream at most so many bytes per second from now on, math.Inf(1): as before. Its silence does not count
// from then on. It returns false if no stream is open.
func (s *Stream) Slow(bytesPerSecond float64) (bool, error) {
	s.setIdle(0)
	return s.slow(bytesPerSecond)
}

// EndsByServer has the stream wait for the server to end it, however long that is silent, and not come back.
func (s *Stream) EndsByServer() {
	s.setIdle(0)
	if s.setReconnect(false) {
		s.Close()
	}
}

func (s *Stream) request() Request { return s.keeper.Request() }

func (s *Stream) again() {
	renew := s.opts.rarely().renewInGo
	if renew == nil {
		s.connect()
		return
	}
	s.hub.post(func() error { return s.renewBy(func() error { return renew(s.keeper) }) })
}

func (s *Stream) ended() {
	s.hub.forget(&s.source)
	s.keeper.Ended()
}

func (s *Stream) hasOpened(begun time.Time, a *answer) {
	if opened := s.opts.rarely().opened; opened != nil {
		opened(s.keeper, begun, a.at)
	}
}

func (s *Stream) hasClosed(at time.Time, c Close, _ *failure) {
	if closed := s.opts.rarely().closed; closed != nil {
		closed(s.keeper, at, c)
	}
}

func (s *Stream) event(time.Time, *eventstream.Event) {}
func (s *Stream) answered(time.Time, int)             {}
func (s *Stream) makeSecond(*followUp, *firstEvent)   {}
