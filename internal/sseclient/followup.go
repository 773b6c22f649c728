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

// A SecondRequest is a request that a client sends after an event. Some services send no messages before this request.
type SecondRequest struct {
	Method string // "": POST
	URL    string // absolute, or relative to the URL of the stream after redirects
	Header http.Header
	Body   string
	OK     func(status int) bool // nil: 200 to 299 are accepted
	// ByService reports whether the service chose the whole URL. Another origin is then treated as in a redirect.
	ByService bool
}

// A FollowUp is the second request of one open stream. A goroutine sends the request. If the stream ends meanwhile,
// that goroutine becomes the owner of the stream and reports its end.
type FollowUp struct {
	stream *Stream
	url    *url.URL // of the stream before redirects
	base   *url.URL // after redirects

	// Guarded by the stream's mu.
	timer      *time.Timer // limits the wait for the event
	cancel     context.CancelFunc
	isRunning  bool     // the goroutine is running; it handles streamEnd
	isAccepted bool     // the service has accepted the request
	failure    *failure // the reader ends the stream for this reason; nil: none
	streamEnd  *failure // the end of the stream during the request; nil: none
}

var (
	errNoEvent       = errors.New("the event before it did not arrive in time")
	errSecondRequest = errors.New("the second request (then)")
)

func (s *Stream) startFollowUp(r *Response) {
	f := &FollowUp{stream: s, url: r.requestURL, base: r.URL}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followUp, s.awaitsEvent = f, true
	if timeout := s.opts.FollowUpTimeout; timeout > 0 {
		f.timer = time.AfterFunc(timeout, func() {
			f.fail(followUpFailure(fmt.Errorf("%w: %v", errNoEvent, timeout), 0))
		})
	}
}

func followUpFailure(err error, status int) *failure {
	return &failure{reason: ReasonThen, err: fmt.Errorf("%w: %w", errSecondRequest, err), status: status}
}

// fail ends the stream because of a failure of its second request. It does not wait.
func (f *FollowUp) fail(cause *failure) {
	s := f.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followUp != f || f.failure != nil || f.isAccepted {
		return // the stream or the request has already ended
	}
	f.failure = cause
	s.attention.Store(true)
	if s.raw != nil {
		_ = s.raw.Close()
	}
}

func (s *Stream) offerEvent(e *eventstream.Event) {
	s.mu.Lock()
	f := s.followUp
	s.mu.Unlock()
	if !s.callbacks.FollowUp(s, e, f) {
		return
	}
	s.awaitsEvent = false
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

// pending is Pending for a caller that holds mu.
func (f *FollowUp) pending() bool { return f.stream.followUp == f && f.failure == nil }

// Send sends the request in a goroutine, unless the stream has ended. If err is not nil, or the request fails, the
// stream ends with ReasonThen. Any goroutine may call Send, but only once.
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
	f.cancel, f.isRunning = cancel, true
	go f.run(ctx, second, r)
}

// request returns the request to send. If the service chose another origin, the rules of checkRedirect apply.
func (f *FollowUp) request(second *SecondRequest) (*request, error) {
	o := f.stream.opts
	to, err := resolveURL(f.base, second.URL)
	crosses := false
	if err == nil && (second.ByService || Origin(f.base) != Origin(f.url)) {
		crosses, err = checkRedirect(f.url, to, o.FollowRedirects, second.Body != "")
	}
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	r := o.request(f.stream.group.client, to, &Request{
		Method: cmp.Or(second.Method, http.MethodPost), Header: make(http.Header), Body: second.Body, Plain: true,
	})
	r.acceptEncoding = ""
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

func (f *FollowUp) run(ctx context.Context, second *SecondRequest, r *request) {
	s := f.stream
	defer f.cancel()
	response, cause := f.send(ctx, second, r)
	if cause == nil && ctx.Err() == nil {
		report(s, s.callbacks.Answered, response.At, response)
	}
	s.mu.Lock()
	f.isRunning = false
	ended := f.streamEnd
	if cause == nil {
		f.isAccepted, s.failures = true, 0
	}
	s.mu.Unlock()
	switch {
	case ended != nil:
		s.endAttempt(nil, ended) // also ends the ownership of the stream
	case cause != nil && ctx.Err() == nil: // after the end of ctx all streams end
		f.fail(cause)
	}
	if response != nil {
		response.drain()
	}
}

func (f *FollowUp) send(ctx context.Context, second *SecondRequest, r *request) (*Response, *failure) {
	s := f.stream
	c := s.group.client
	if !c.await(ctx) || processDials.Acquire(ctx, 1) != nil {
		return nil, followUpFailure(ctx.Err(), 0)
	}
	defer processDials.Release(1)
	dialCtx, cancel := contextWithin(ctx, s.opts.FollowUpTimeout)
	defer cancel()
	started := time.Now()
	e := exchange{client: c, debug: s.opts.Debug, attach: closeAfter(ctx)}
	response, fail := e.do(dialCtx, r)
	switch {
	case fail != nil && response == nil:
		return nil, followUpFailure(fail.err, 0)
	case fail != nil:
		return nil, followUpFailure(fail.err, response.Status)
	case !second.accepts(response.Status):
		cause := followUpFailure(response.statusError(), response.Status)
		cause.retryAfter = retryAfter(response.Header.Get("Retry-After"), time.Now())
		hangUp(response.conn)
		return nil, cause
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

// drain reads the rest of a response, so that the server closes the connection first and keeps the TIME_WAIT state.
// Otherwise a ramp of thousands of streams could use all ephemeral ports of this machine.
func (r *Response) drain() {
	_ = r.conn.SetReadDeadline(time.Now().Add(drainFor))
	_, _ = io.Copy(io.Discard, io.LimitReader(r.conn, drainBytes))
	hangUp(r.conn)
}

// endFollowUp ends the second request after the end of its stream. It returns the failure to report, which may be the
// failure of the second request. It returns nil if the goroutine of the second request reports the end. The reader
// calls it.
func (s *Stream) endFollowUp(end *failure) *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.followUp
	s.followUp, s.awaitsEvent = nil, false
	if f.timer != nil {
		f.timer.Stop()
	}
	if !f.isAccepted {
		s.failures++
	}
	if f.failure != nil && s.stopped == "" && errors.Is(end.err, net.ErrClosed) {
		end = f.failure
	}
	if f.isRunning {
		f.streamEnd = end
		f.cancel()
		return nil
	}
	return end
}
