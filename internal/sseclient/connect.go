package sseclient

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// connect makes one attempt: dial, handshake, request, response header. The poller or a new goroutine reads the stream,
// because TLS and the headers have enlarged the stack of this goroutine.
func (s *Stream) connect() {
	if a, ok := s.await(); ok {
		s.attempt(a)
	}
}

type attempt struct {
	ctx     context.Context
	end     func()  // ends ctx
	permit  *permit // nil: not needed
	request Request
}

// await waits until the next attempt may dial. If the stream is stopped first, await ends the stream and returns false.
func (s *Stream) await() (a attempt, ok bool) {
	a.ctx, a.end = s.begin()
	a.request = s.callbacks.Request(s)
	c := s.group.client
	ok = c.await(a.ctx) // this wait is not part of ConnectTimeout
	if ok && s.needsPermit() {
		a.permit, ok = takePermit(a.ctx, needsHandshake(a.request.URL, c.Proxies))
	}
	if !ok {
		a.end()
		s.end()
	}
	return a, ok
}

func (s *Stream) attempt(a attempt) {
	started := time.Now()
	s.reportAttempt(started)
	r, fail := s.dial(a)
	a.end() // before the release of the permit, which allows another attempt
	a.permit.release()
	if fail != nil {
		s.endAttempt(r, fail)
		return
	}
	if shared, ok := r.conn.(*h2Pipe); ok {
		st := shared.st
		s.open(st)
		s.accept(started, r, st)
		st.start(s)
		return
	}
	r.keepOpen()
	var t transport = blockingConn{r.conn}
	if s.cuttable {
		t = pausingConn{blockingConn{r.conn}, s}
	}
	p, raw := poll(r.conn, s), io.Closer(rawOf(r.conn))
	if p != nil {
		p.idle, t, raw = r.idle, p, p
	}
	s.open(raw)
	s.accept(started, r, t)
	if p == nil {
		go s.read()
	} else if err := p.start(); err != nil {
		s.finishStream(err)
	}
}

func (s *Stream) reportAttempt(at time.Time) {
	s.hasOpened = false
	if s.callbacks.Connecting != nil {
		s.callbacks.Connecting(s, at)
	}
}

func (s *Stream) dial(a attempt) (*Response, *failure) {
	ctx, cancel := contextWithin(a.ctx, s.opts.ConnectTimeout)
	defer cancel()
	u, err := ParseURL(a.request.URL) // parsed for each attempt, because a stored URL would use 200 bytes per stream
	if err != nil {
		return nil, &failure{reason: ReasonError, err: err}
	}
	c := s.group.client
	r := s.opts.request(c, u, &a.request)
	if s.cuttable {
		r.StreamsPerConnection = 1 // a cut connection must not affect other streams
	}
	id := eventstream.Text(s.parser.LastEventID())
	if s.callbacks.LastEventID != nil {
		id = s.callbacks.LastEventID(s)
	}
	s.opts.Resume.apply(r, id)
	e := exchange{client: c, attach: s.attach, permit: a.permit, lateHeader: s.opts.LateHeader, debug: s.opts.Debug}
	return e.open(ctx, r)
}

// request returns the request to send. The client's NoSharing limits each connection to one stream.
func (o *Options) request(c *Client, u *url.URL, r *Request) *request {
	sharing := o.Sharing
	if c.NoSharing {
		sharing.StreamsPerConnection = 1
	}
	return &request{
		url: u, method: cmp.Or(r.Method, http.MethodGet), header: r.Header, body: r.Body, acceptEncoding: o.AcceptEncoding,
		jar: o.Jar, userAgent: c.UserAgent, maxRedirects: o.MaxRedirects, followRedirects: o.FollowRedirects,
		plain: r.Plain, anyType: o.AnyType, Sharing: sharing,
	}
}

// begin makes an attempt the owner of the stream. ctx ends when end is called or the stream is stopped.
func (s *Stream) begin() (ctx context.Context, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithCancel(s.group.ctx)
	s.raw, s.timer, s.cancel, s.cut = nil, nil, cancel, nil
	if s.stopped != "" {
		cancel()
	}
	return ctx, cancel
}

// open makes the stream open. raw is the connection that Stop closes.
func (s *Stream) open(raw io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw, s.cancel = raw, nil
}

// contextWithin returns a context that ends after d, or only with its parent if d is 0.
func contextWithin(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 0 {
		return context.WithTimeout(parent, d)
	}
	return context.WithCancel(parent)
}

func (s *Stream) accept(started time.Time, r *Response, t transport) {
	s.hasOpened = true
	if st, ok := t.(*h2Stream); ok {
		r.HTTP2, r.FirstOnConnection = true, st.conn.firstOpened()
	}
	if s.callbacks.Opened != nil {
		s.callbacks.Opened(s, started, r)
	}
	if s.callbacks.FollowUp == nil {
		s.failures = 0
	} else {
		s.startFollowUp(r)
	}
	if !r.isReused {
		processRamp.countConnection()
	}
	s.keepsConnection = false
	s.body.begin(r, t)
	s.body.watch(r.At)
	s.parser.Reset(s.body.decodedReader(r), s.opts.MaxEventSize)
}
