package sse

import (
	"cmp"
	"net/http"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

// An Opener opens event streams in Go for one virtual user, with the metrics of an EventSource.
type Opener struct{ m *module }

// NewOpener returns an Opener. It belongs into the init context, where metrics are registered.
func NewOpener(vu modules.VU) *Opener {
	return &Opener{&module{vu: vu, metrics: registerMetrics(vu)}}
}

// Exports returns EventSource and open for the script of the virtual user.
func (o *Opener) Exports() map[string]any { return o.m.Exports().Named }

// Streams are event streams of one iteration with the same options. The iteration lasts until Over.
type Streams struct {
	session *session
	opts    sseclient.Options
	tags    metrics.TagsAndMeta
}

// Streams returns a set of streams: name and method are their tags. On the event loop.
func (o *Opener) Streams(name, method string, options sseclient.Options) *Streams {
	state := network.State(o.m.vu, importPath)
	g := &Streams{session: o.m.currentSession(), opts: options, tags: state.Tags.GetCurrentValues()}
	g.session.hold()
	g.opts.MaxRedirects, g.opts.Jar, g.opts.Debug = redirectLimit(state), jarOf(state), debugOf(state, &g.tags)
	g.tags.SetTag(metrics.TagName.String(), name)
	describeRequest(&g.tags, state.Options.SystemTags, nil, cmp.Or(method, http.MethodGet))
	return g
}

// OnEnd lets the iteration end, once each stream has, and calls then on the event loop. From any goroutine.
func (g *Streams) OnEnd(callback func() error) {
	g.session.queue(callback)
	g.session.release()
}

// OnLoop runs a function on the event loop. An error of it ends the iteration. From any goroutine, before Over.
func (g *Streams) OnLoop(f func() error) { g.session.queue(f) }

// Push queues samples of the iteration for k6. It does not wait. From any goroutine, before Over.
func (g *Streams) Push(samples ...metrics.Sample) { g.session.push(samples...) }

// Renew calls ask on the event loop, and then proceed with its error, which may be one that a script threw. It does not ask for a
// stream that was stopped.
func (g *Streams) Renew(s *sseclient.Stream, proceed func(error), ask func() error) {
	g.session.queue(func() error {
		if s.Stopped() {
			proceed(nil)
			return nil
		}
		return g.session.renewed(ask(), proceed)
	})
}

// Add makes a stream. The caller opens it.
func (g *Streams) Add(on sseclient.Callbacks) *sseclient.Stream {
	g.session.measure(&g.tags, &on)
	return g.session.Add(&g.opts, on)
}
