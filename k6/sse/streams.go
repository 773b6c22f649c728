package sse

import (
	"cmp"
	"net/http"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

// Streams is a set of event streams of one iteration with the same options and callbacks. The iteration does not end
// before OnEnd is called.
type Streams struct {
	session   *session
	opts      sseclient.Options
	callbacks sseclient.Callbacks
	tags      metrics.TagsAndMeta
}

// Streams returns an empty set. In samples of its streams, the tags url and name have the value name. The settings of
// k6 replace MaxRedirects, Jar and Debug of options. Streams must be called on the event loop.
func (m *Module) Streams(name, method string, options sseclient.Options, callbacks sseclient.Callbacks) *Streams {
	state := network.State(m.vu, importPath)
	g := &Streams{session: m.currentSession(), opts: options, callbacks: callbacks, tags: state.Tags.GetCurrentValues()}
	g.session.acquire()
	g.opts.MaxRedirects, g.opts.Jar, g.opts.Debug = redirectLimit(state), jarOf(state), debugOf(state, &g.tags)
	g.tags.SetTag(metrics.TagName.String(), name)
	describeRequest(&g.tags, state.Options.SystemTags, nil, cmp.Or(method, http.MethodGet))
	g.session.measure(&g.tags, &g.callbacks)
	return g
}

// OnEnd calls callback on the event loop, and then allows the iteration to end. It must be called once, after the
// streams have ended. Any goroutine may call it.
func (g *Streams) OnEnd(callback func() error) {
	g.session.queue(callback)
	g.session.release()
}

// OnLoop runs a function on the event loop. Its error ends the iteration. Any goroutine may call OnLoop before OnEnd.
func (g *Streams) OnLoop(f func() error) { g.session.queue(f) }

// Push queues samples for k6. It does not wait. Any goroutine may call it before OnEnd.
func (g *Streams) Push(samples ...metrics.Sample) { g.session.push(samples...) }

// Renew calls prepare on the event loop, and then calls proceed with the error of prepare, which may be the exception
// of a script. For a stopped stream it calls only proceed.
func (g *Streams) Renew(s *sseclient.Stream, proceed func(error), prepare func() error) {
	g.session.queue(func() error {
		if s.Stopped() {
			proceed(nil)
			return nil
		}
		return g.session.finishRenewal(prepare(), proceed)
	})
}

// Add returns a new stream. The caller opens it. value is a pointer to a struct that embeds a Meter.
func (g *Streams) Add(value interface{ meter() *Meter }) *sseclient.Stream {
	return g.session.Add(&g.opts, &g.callbacks, value)
}
