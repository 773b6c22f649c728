package sseclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A SecondRequest is a request that a client sends after an event of its stream, for services that start to send only then.
type SecondRequest struct {
	Method string // "": POST
	URL    string // absolute, or relative to that of the stream after redirects
	Header http.Header
	Body   string
	OK     func(status int) bool // nil: 200 to 299 are accepted
	// ByService reports that the service chose the whole URL: the rule of redirects applies to another origin.
	ByService bool
}

// A FollowUp is the second request of one stream, from the header of the stream to the response. The reader starts it and a
// goroutine sends it. If the stream ends meanwhile, that goroutine takes the stream over and reports its end.
type FollowUp struct {
	stream *Stream
	url    *url.URL // of the stream before redirects
	base   *url.URL // after redirects

	// Guarded by the stream's mu.
	timer   *time.Timer // until its event
	cancel  context.CancelFunc
	running bool     // its goroutine will look at ended
	done    bool     // it was accepted
	failed  *failure // the reader is to end the stream
	ended   *failure // how the stream ended while it was running
}

var (
	errNoFirstEvent = errors.New("the event that it waits for did not come in time")
	errSecond       = errors.New("the second request (then)")
)

// awaitFirst starts the wait for the event of the second request.
func (s *Stream) awaitFirst(r *Response) {
	f := &FollowUp{stream: s, url: r.requestURL, base: r.URL}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow, s.awaits = f, true
	if timeout := s.opts.FollowUpTimeout; timeout > 0 {
		f.timer = time.AfterFunc(timeout, func() {
			f.fail(followUpFailure(fmt.Errorf("%w: %v", errNoFirstEvent, timeout), 0))
		})
	}
}

func followUpFailure(err error, status int) *failure {
	return &failure{reason: ReasonThen, err: fmt.Errorf("%w: %w", errSecond, err), status: status}
}

// fail ends the stream for a failure of its second request. It does not wait.
func (f *FollowUp) fail(why *failure) {
	s := f.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follow != f || f.failed != nil || f.done {
		return // the stream has ended, or waits no more
	}
	f.failed = why
	s.attention.Store(true)
	if s.raw != nil {
		_ = s.raw.Close()
	}
}

// followFirst offers an event to the second request.
func (s *Stream) followFirst(e *eventstream.Event) {
	s.mu.Lock()
	f := s.follow
	s.mu.Unlock()
	if !s.on.FollowUp(e, f) {
		return
	}
	s.awaits = false
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
	}
}

// Pending reports whether the stream is open and the second request has not failed.
func (f *FollowUp) Pending() bool {
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	return f.pending()
}

func (f *FollowUp) pending() bool { return f.stream.follow == f && f.failed == nil }

// Send sends the request in a goroutine, unless the stream has ended. An error ends the stream with ReasonThen. Any goroutine may
// call it, once.
func (f *FollowUp) Send(second *SecondRequest, err error) {
	s := f.stream
	var r *request
	if err == nil {
		r, err = f.request(second)
	}
	if err != nil {
		f.fail(followUpFailure(err, 0))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.pending() {
		return
	}
	ctx, cancel := context.WithCancel(s.group.ctx)
	f.cancel, f.running = cancel, true
	go f.run(ctx, second, r)
}

// request resolves the URL, and applies the rule of redirects if the service chose the origin by its event or by a redirect.
func (f *FollowUp) request(second *SecondRequest) (*request, error) {
	o := f.stream.opts
	to, err := f.base.Parse(second.URL)
	if err == nil {
		to, err = ParseURL(to.String())
	}
	crosses := false
	if err == nil && (second.ByService || Origin(f.base) != Origin(f.url)) {
		crosses, err = checkRedirect(f.url, to, o.FollowRedirects, second.Body != "")
	}
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	r := o.request(f.stream.group.client, to, &Request{Method: cmp.Or(second.Method, http.MethodPost), Header: make(http.Header), Body: second.Body, Plain: true})
	r.accept = ""
	for name, values := range second.Header {
		value := strings.Join(values, ", ")
		if err := CheckHeader(name, value); err != nil {
			return nil, err
		}
		if !crosses {
			r.header.Set(name, strings.TrimSpace(value))
		}
	}
	return r, nil
}

// run sends the request and reports the result.
func (f *FollowUp) run(ctx context.Context, second *SecondRequest, r *request) {
	s := f.stream
	defer f.cancel()
	response, why := f.send(ctx, second, r)
	if why == nil && ctx.Err() == nil && s.on.Answered != nil {
		s.on.Answered(response.At, response)
	}
	s.mu.Lock()
	f.running = false
	ended := f.ended
	if why == nil {
		f.done, s.failures = true, 0
	}
	s.mu.Unlock()
	switch {
	case ended != nil:
		s.closed(nil, ended) // ends the ownership of the stream
	case why != nil && ctx.Err() == nil: // otherwise all streams end
		f.fail(why)
	}
	if response != nil {
		response.drain()
	}
}

// send returns a response that was accepted, or the failure.
func (f *FollowUp) send(ctx context.Context, second *SecondRequest, r *request) (*Response, *failure) {
	s := f.stream
	c := s.group.client
	if !c.await(ctx) || !processDials.enter(ctx) {
		return nil, followUpFailure(ctx.Err(), 0)
	}
	defer processDials.leave()
	dialCtx, cancel := contextWithin(ctx, s.opts.FollowUpTimeout)
	defer cancel()
	started := time.Now()
	d := exchange{client: c, debug: s.opts.Debug, attach: closeAfter(ctx)}
	response, fail := d.do(dialCtx, r)
	switch {
	case fail != nil && response == nil:
		return nil, followUpFailure(fail.err, 0)
	case fail != nil:
		return nil, followUpFailure(fail.err, response.Status)
	case !second.accepts(response.Status):
		why := followUpFailure(fmt.Errorf("unexpected status %d %s%s", response.Status, http.StatusText(response.Status), response.explain()), response.Status)
		why.retryAfter = retryAfter(response.Header.Get("Retry-After"), time.Now())
		hangUp(response.conn)
		return nil, why
	}
	response.Started = started
	return response, nil
}

func (r *SecondRequest) accepts(status int) bool {
	if r.OK != nil {
		return r.OK(status)
	}
	return status >= 200 && status <= 299
}

const (
	drainBytes = 64 << 10
	drainFor   = 250 * time.Millisecond
)

// drain reads the rest of a response, so that the server closes the connection and keeps its address in TIME_WAIT: a ramp of
// thousands would use up the addresses here.
func (r *Response) drain() {
	_ = r.conn.SetReadDeadline(time.Now().Add(drainFor))
	_, _ = io.Copy(io.Discard, io.LimitReader(r.conn, drainBytes))
	hangUp(r.conn)
}

// endFollow is called by the reader when its stream has ended. It returns the end to report, which may be the failure of the second
// request; nil if the goroutine of that reports it.
func (s *Stream) endFollow(end *failure) *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.follow
	s.follow, s.awaits = nil, false
	if f.timer != nil {
		f.timer.Stop()
	}
	if !f.done {
		s.failures++
	}
	if f.failed != nil && s.stopped == "" && errors.Is(end.err, net.ErrClosed) {
		end = f.failed
	}
	if f.running {
		f.ended = end
		f.cancel()
		return nil
	}
	return end
}
