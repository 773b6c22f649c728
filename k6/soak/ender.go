package soak

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext/httpext"
	"go.k6.io/k6/v2/metrics"
	"gopkg.in/guregu/null.v3"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

const (
	// Limits of concurrent requests that end a stream, per virtual user and per runner: thousands would dial at once.
	endsOfVU     = 20
	endsOfRunner = 500
	// endTimeout is the time limit of the answer to a request for an end.
	endTimeout = 10 * time.Second
	// recheckInterval is the time until the ledger of a stream on which a noop is due is checked again.
	recheckInterval = 100 * time.Millisecond
)

// An ender asks for the ends of the streams of a holding, as http.asyncRequest of k6 would.
type ender struct {
	h       *holding
	tags    metrics.TagsAndMeta // of the requests
	checks  metrics.TagsAndMeta
	workers int
}

func newEnder(h *holding) ender {
	e := ender{h: h, tags: h.state.Tags.GetCurrentValues(), checks: h.state.Tags.GetCurrentValues(), workers: endsOfVU}
	e.tags.SetTag(metrics.TagName.String(), h.service.End.Request.Route())
	if run := lib.GetExecutionState(h.ctx); run != nil {
		e.workers = min(endsOfVU, max(endsOfRunner/max(int(run.GetInitializedVUsCount()), 1), 1))
	}
	return e
}

// run asks for the end of each stream, some at a time, and returns when all were asked. A stream is left alone while a noop is
// due on it, so that what is lost at the end can be told from what is on its way.
func (e *ender) run(streams []*holdStream) {
	queue := make(chan *holdStream, len(streams)) // as many as it ever holds
	for _, s := range streams {
		queue <- s
	}
	left := len(streams)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range min(e.workers, len(streams)) {
		all.Go(func() {
			for s := range queue {
				if undecided := s.ledger().Undecided(s.observer.now()); undecided > 0 && e.h.ctx.Err() == nil {
					sleep(e.h.ctx, min(undecided, recheckInterval))
					queue <- s
					continue
				}
				e.end(s)
				mu.Lock()
				if left--; left == 0 {
					close(queue)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

// end requests the end of a stream. One that never opened is given up: if its id has a stream, that is another client's. So is
// a client that is disconnected, and reconnects or had a phase: the service has no stream to end. If the service accepts no such
// request, the client ends the stream.
func (e *ender) end(s *holdStream) {
	if e.h.ctx.Err() != nil {
		return // the streams are being interrupted
	}
	open := s.ledger().CloseRequested(s.observer.now()) // first: a stream that ends between the two is not to count as dropped
	s.stream.EndByServer()                              // from here on endTimeout decides
	switch {
	case !open && (s.reconnects() || s.isPhased()) && s.ledger().Sums().Streams > 0:
		s.status = notSent
		s.close()
	case !e.usesRequest() || s.ledger().Sums().Streams == 0:
		s.close()
	default:
		s.status = int16(e.send(s)) // #nosec G115 -- a status, or one of our codes
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

// send sends the request, records what became of it, and returns the status of its answer, 0 where there is none.
func (e *ender) send(s *holdStream) (status int) {
	r, err := e.request(s)
	if err == nil {
		var answer *httpext.Response
		start := time.Now()
		answer, err = e.h.send(&r, e.tags, endTimeout, httpext.ResponseTypeNone)
		e.answered(&r, answer, time.Since(start))
		if err == nil {
			return answer.Status
		}
	}
	e.h.warn(err)
	return 0
}

// warn logs why a request failed, unless the iteration is being interrupted.
func (h *holding) warn(err error) {
	if h.ctx.Err() == nil {
		h.state.Logger.WithField("error", err).Warn("Request Failed")
	}
}

// request makes it: on the event loop, where the description has functions.
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
		return err // and the iteration is interrupted
	})
	select {
	case r = <-requests:
		return r, nil
	case <-e.h.ctx.Done():
		return r, e.h.ctx.Err()
	}
}

// send sends a request as k6/http does, with its metrics, except that no redirect is followed: it is the answer, as it is for
// the publisher.
func (h *holding) send(r *sseclient.Request, tags metrics.TagsAndMeta, timeout time.Duration, body httpext.ResponseType) (*httpext.Response, error) {
	u, err := httpext.ToURL(r.URL)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the URL
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
	return httpext.MakeRequest(h.ctx, h.state, parsed) //nolint:wrapcheck // it names the cause
}

// finish makes the checks of a stream that has ended, and whose end was asked for.
func (s *holdStream) finish() {
	h, e := s.holding, &s.holding.ender
	if s.timer != nil {
		s.timer.Stop()
	}
	if !h.Unchecked && (!s.isPhased() || h.drops()) {
		e.check(s)
	}
	h.mu.Lock()
	h.unfinished-- // only now: k6 takes no sample of an iteration that is over
	h.mu.Unlock()
	h.resolveIfDone()
}

// check makes the checks of a stream. Messages that a dropped stream missed are left to the verdict: not every
// service resumes. A stream with a lifetime may be shorter than an interval.
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
		check("Delete status was 200", e.ended(s, sums.State))
	}
	check("Received all messages", s.isPhased() || h.Lifetimes != nil && sums.HasNoFault() || s.observer.faultless(&sums))
}

// notSent is the status of an end that needed no request: the client was disconnected.
const notSent = -1

// accepts reports whether a status is valid for the request that ends a stream.
func (e *ender) accepts(status int) bool { return e.h.service.End.Request.Accepts(status) }

// ended reports whether the request for the end of a stream was accepted, or there was no stream to end: where clients
// reconnect, it may have ended a moment before.
func (e *ender) ended(s *holdStream, state ledger.State) bool {
	notFound := s.status == http.StatusNotFound || s.status == http.StatusGone
	return s.status == notSent || e.accepts(int(s.status)) || s.reconnects() && notFound && state == ledger.Completed
}
