package soak

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext/httpext"
	"go.k6.io/k6/v2/metrics"
	"gopkg.in/guregu/null.v3"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

const (
	// Maximum numbers of concurrent requests that end a stream, per virtual user and per runner. Each virtual user may
	// send at least one. Without these limits, thousands of requests would dial at once.
	maxEndsPerVU      = 20
	maxEndsPerRunner  = 500
	endRequestTimeout = 10 * time.Second
	// recheckInterval is the time between two checks of a stream on which a noop is due.
	recheckInterval = 100 * time.Millisecond
)

// An ender requests the ends of the streams of a holding, and records the checks of the streams.
type ender struct {
	h       *holding
	tags    metrics.TagsAndMeta // of the requests
	checks  metrics.TagsAndMeta // of the samples of checks
	workers int                 // maximum number of concurrent requests
}

// newEnder returns the ender of a holding. It divides maxEndsPerRunner among the virtual users.
func newEnder(h *holding) ender {
	e := ender{h: h, tags: h.state.Tags.GetCurrentValues(), checks: h.state.Tags.GetCurrentValues(), workers: maxEndsPerVU}
	e.tags.SetTag(metrics.TagName.String(), h.service.End.Request.Route())
	if execution := lib.GetExecutionState(h.ctx); execution != nil {
		e.workers = min(maxEndsPerVU, max(maxEndsPerRunner/max(int(execution.GetInitializedVUsCount()), 1), 1))
	}
	return e
}

// run requests the end of each stream, with limited concurrency, and returns when all ends are requested. It
// postpones a stream on which a noop is due, because that noop may be late, not lost.
func (e *ender) run(streams []*holdStream) {
	queue := make(chan *holdStream, len(streams)) // sending never blocks
	for _, s := range streams {
		queue <- s
	}
	remaining := len(streams)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range min(e.workers, len(streams)) {
		workers.Go(func() {
			for s := range queue {
				if undecided := s.ledger().UndecidedTime(s.observer.now()); undecided > 0 && e.h.ctx.Err() == nil {
					sleep(e.h.ctx, min(undecided, recheckInterval))
					queue <- s
					continue
				}
				e.end(s)
				mu.Lock()
				if remaining--; remaining == 0 {
					close(queue)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
}

// end requests the end of a stream. In these cases the client closes the stream itself, without a request:
//   - the service has no such request;
//   - the stream never opened, so its id may belong to another client;
//   - a client that reconnects or has a phase is disconnected;
//   - the runner has no port, descriptor or IPv6 address for the request.
//
// The client also closes a stream that has not ended EndTimeout after the request.
func (e *ender) end(s *holdStream) {
	if e.h.ctx.Err() != nil {
		return // all streams are interrupted
	}
	// CloseRequested precedes EndByServer, because a stream that ends between the two calls was not dropped.
	open := s.ledger().CloseRequested(s.observer.now())
	s.stream.EndByServer() // EndTimeout replaces the idle timeout
	switch {
	case !open && (s.reconnects() || s.isPhased()) && s.ledger().Sums().Streams > 0:
		s.status = statusNotSent
		s.close()
	case !e.usesRequest() || s.ledger().Sums().Streams == 0:
		s.close()
	default:
		if s.status = int16(e.send(s)); s.status == statusNotSent { // #nosec G115 -- an HTTP status
			s.ledger().EndByClient()
			s.close()
		}
	}
	h := e.h
	h.mu.Lock()
	s.endRequested = true
	finished := s.finished
	if !finished {
		s.timer = time.AfterFunc(time.Duration(h.EndTimeout*float64(time.Second)), s.close)
	}
	h.mu.Unlock()
	if finished {
		s.finish()
	}
}

func (e *ender) usesRequest() bool {
	return e.h.service.End.By == service.ByRequest
}

// send sends the request, records its outcome, and returns the status of the response, 0 without one. It returns
// statusNotSent if the runner lacked a port, a descriptor or an IPv6 address.
func (e *ender) send(s *holdStream) (status int) {
	r, err := e.request(s)
	if err == nil {
		var resp *httpext.Response
		var dial dialTrace
		start := time.Now()
		resp, err = e.h.send(dial.trace(e.h.ctx), &r, e.tags, endRequestTimeout, httpext.ResponseTypeNone)
		lack := dial.lack()
		e.recordResponse(&r, resp, cmp.Or(lack, e.code(resp)), time.Since(start))
		switch {
		case lack != "":
			return statusNotSent
		case err == nil:
			return resp.Status
		}
	}
	e.h.warn(err)
	return 0
}

func (h *holding) warn(err error) {
	if h.ctx.Err() == nil {
		h.state.Logger.WithField("error", err).Warn("Request Failed")
	}
}

// request returns the request that ends a stream. If the description has functions, they run on the event loop.
func (e *ender) request(s *holdStream) (r sseclient.Request, err error) {
	if !e.h.service.hasFunctions() {
		return s.endRequest()
	}
	requests := make(chan sseclient.Request, 1)
	e.h.group.OnLoop(func() error {
		r, err := s.endRequest()
		if err == nil {
			requests <- r
		}
		return err // interrupts the iteration
	})
	select {
	case r = <-requests:
		return r, nil
	case <-e.h.ctx.Done():
		return r, e.h.ctx.Err()
	}
}

// A dialTrace records whether a request got a connection, and the error of its last dial. k6 does not return that
// error.
type dialTrace struct {
	connected atomic.Bool
	failure   atomic.Pointer[error]
}

// trace returns a context whose requests are recorded.
func (d *dialTrace) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:     func(httptrace.GotConnInfo) { d.connected.Store(true) },
		ConnectDone: func(_, _ string, err error) { d.failure.Store(&err) },
	})
}

// lack returns the code of the resource that the runner lacked for the connection (see network.LackOf). It returns ""
// if the request got a connection, or failed for another reason.
func (d *dialTrace) lack() string {
	err := d.failure.Load()
	if d.connected.Load() || err == nil {
		return ""
	}
	return network.LackOf(*err)
}

// send sends a request as k6/http does, and pushes the same metrics. Like the publisher, it follows no redirect.
func (h *holding) send(ctx context.Context, r *sseclient.Request, tags metrics.TagsAndMeta, timeout time.Duration, body httpext.ResponseType) (*httpext.Response, error) {
	u, err := httpext.ToURL(r.URL)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the URL
	}
	req := &http.Request{Method: r.Method, URL: u.GetURL(), Host: r.Header.Get("Host"), Header: r.Header}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", h.state.Options.UserAgent.String)
	}
	parsed := &httpext.ParsedHTTPRequest{
		URL: &u, Req: req, Timeout: timeout, ResponseType: body, Redirects: null.IntFrom(0), ActiveJar: h.state.CookieJar,
		Cookies: map[string]*httpext.HTTPRequestCookie{}, ResponseCallback: func(status int) bool { return status >= 200 && status <= 399 },
		TagsAndMeta: tags.Clone(),
	}
	if r.Body != "" {
		parsed.Body = bytes.NewBufferString(r.Body)
	}
	if h.state.CookieJar != nil {
		httpext.SetRequestCookies(req, h.state.CookieJar, parsed.Cookies)
	}
	return httpext.MakeRequest(ctx, h.state, parsed) //nolint:wrapcheck // names the cause
}

// finish records the checks of a stream that has ended and whose end was requested.
func (s *holdStream) finish() {
	h, e := s.holding, &s.holding.ender
	if s.timer != nil {
		s.timer.Stop()
	}
	if !h.Unchecked && (!s.isPhased() || h.drops()) {
		e.check(s)
	}
	h.mu.Lock()
	h.unfinished-- // after the checks are recorded, because k6 accepts no samples after the end of an iteration
	h.mu.Unlock()
	h.resolveIfDone()
}

// check records the checks of a stream. The verdict decides about messages that a dropped stream missed, because not
// every service resumes. It also decides about the messages of a stream with a lifetime. The stream may end before its
// first message, and the ids of later streams may show that its numbers are not a sequence.
func (e *ender) check(s *holdStream) {
	h, sums := e.h, s.ledger().Sums()
	now := time.Now()
	check := func(name string, ok bool) {
		tags := e.checks.Tags
		if h.state.Options.SystemTags.Has(metrics.TagCheck) {
			tags = tags.With(metrics.TagCheck.String(), name)
		}
		sample := metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: h.state.BuiltinMetrics.Checks, Tags: tags}, Time: now, Metadata: e.checks.Metadata}
		if ok {
			sample.Value = 1
		}
		metrics.PushIfNotDone(h.ctx, h.state.Samples, sample)
	}
	check("Get status was 200", sums.Streams > 0)
	if e.usesRequest() {
		check("Delete status was 200", e.isEndAccepted(s, sums.State))
	}
	check("Received all messages", s.isPhased() || h.Lifetimes != nil && sums.State == ledger.Completed || s.observer.passesCheck(&sums))
}

// statusNotSent replaces the status of an opened stream if no request was sent, because the client was disconnected or
// the runner lacked a port, a descriptor or an IPv6 address.
const statusNotSent = -1

func (e *ender) accepts(status int) bool { return e.h.service.End.Request.Accepts(status) }

// isEndAccepted reports whether the service accepted the request for the end of a stream, or no request was sent
// (see statusNotSent). The stream of a client that reconnects may have ended just before the request.
func (e *ender) isEndAccepted(s *holdStream, state ledger.State) bool {
	notFound := s.status == http.StatusNotFound || s.status == http.StatusGone
	return s.status == statusNotSent || e.accepts(int(s.status)) || s.reconnects() && notFound && state == ledger.Completed
}

// serverHeader is the response header with the name of the server, if a service has several servers.
const serverHeader = "X-Server"

// recordResponse records the outcome of a request that ends a stream, unless the run was interrupted.
func (e *ender) recordResponse(request *sseclient.Request, resp *httpext.Response, code string, duration time.Duration) {
	if e.h.ctx.Err() != nil {
		return
	}
	server := ""
	if u, err := url.Parse(request.URL); err == nil {
		server = u.Host
	}
	if resp != nil {
		server = cmp.Or(resp.Headers[http.CanonicalHeaderKey(serverHeader)], server)
	}
	e.h.m.recorder.addEndResponse(server, code, duration)
}

func (e *ender) code(resp *httpext.Response) string {
	if resp != nil && resp.Status != 0 && e.accepts(resp.Status) {
		return shard.CodeOK
	}
	return failureCode(resp)
}

// failureCode returns the code of a failed request; resp is nil if k6 returned an error.
func failureCode(resp *httpext.Response) string {
	const unknown = 1000 // k6's code for other errors
	switch {
	case resp == nil:
		return fmt.Sprint(shard.CodeNet, unknown)
	case resp.Status == 0:
		return fmt.Sprint(shard.CodeNet, cmp.Or(resp.ErrorCode, unknown))
	}
	return fmt.Sprint(shard.CodeStatus, resp.Status)
}

func (t *tally) addEndResponse(server, code string, duration time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams.ends == nil {
		t.streams.ends = new(shard.EndRequests)
	}
	t.streams.ends.Add(server, code, t.wall(time.Now()), duration)
}
