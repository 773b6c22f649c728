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

// connect makes one attempt: dial, handshake, request, response header. It runs in a goroutine of its own, whose stack grows by
// TLS and the headers, and passes the stream on to the poller or to a new goroutine.
func (s *Stream) connect() {
	if at, ok := s.await(); ok {
		s.attempt(at)
	}
}

// An attempt is one attempt to open a stream, which may dial.
type attempt struct {
	ctx     context.Context
	end     func() // ends ctx
	permit  *permit
	request Request
}

// await waits until the next attempt may dial. It ends the stream if that is stopped meanwhile.
func (s *Stream) await() (at attempt, ok bool) {
	at.ctx, at.end = s.begin()
	at.request = s.on.Request()
	c := s.group.client
	ok = c.await(at.ctx) // the wait is not part of the time to connect
	if ok && s.needsPermit() {
		at.permit, ok = takePermit(at.ctx, handshakes(at.request.URL, c.Proxies))
	}
	if !ok {
		at.end()
		s.end()
	}
	return at, ok
}

// attempt dials, and starts the reading of a stream that opened.
func (s *Stream) attempt(at attempt) {
	started := time.Now()
	s.opened = false
	s.on.Connecting(started)
	r, fail := s.dial(at)
	at.end() // before another attempt may dial
	at.permit.leave()
	if fail != nil {
		s.closed(r, fail)
		return
	}
	if shared, ok := r.conn.(*h2Pipe); ok {
		st := shared.st
		s.setRaw(st)
		s.accept(started, r, st)
		st.start(s)
		return
	}
	r.hold()
	var t transport = blocking{r.conn}
	if s.canCut {
		t = pausing{blocking{r.conn}, s}
	}
	p := poll(r.conn, s)
	if p != nil {
		p.idle, t = r.idle, p
		s.setRaw(p)
	}
	s.accept(started, r, t)
	if p == nil {
		go s.read()
	} else if err := p.start(); err != nil {
		s.finishStream(err)
	}
}

// dial makes the request of an attempt.
func (s *Stream) dial(at attempt) (*Response, *failure) {
	ctx, cancel := contextWithin(at.ctx, s.opts.ConnectTimeout)
	defer cancel()
	u, err := ParseURL(at.request.URL) // again: kept, it would cost each stream 200 bytes
	if err != nil {
		return nil, &failure{reason: ReasonError, err: err}
	}
	c := s.group.client
	r := s.opts.request(c, u, &at.request)
	if s.canCut {
		r.PerConnection = 1 // a cut connection must not affect other streams
	}
	id := eventstream.Text(s.parser.LastEventID())
	if s.on.LastEventID != nil {
		id = s.on.LastEventID()
	}
	s.opts.Resume.apply(r, id)
	d := exchange{client: c, attach: s.attach, permit: at.permit, lateHeader: s.opts.LateHeader, debug: s.opts.Debug}
	return d.open(ctx, r)
}

// request returns the request for an event stream.
func (o *Options) request(c *Client, u *url.URL, r *Request) *request {
	return &request{
		url: u, method: cmp.Or(r.Method, http.MethodGet), header: r.Header, body: r.Body, accept: o.Accept,
		jar: o.Jar, userAgent: c.UserAgent, maxRedirects: o.MaxRedirects, followRedirects: o.FollowRedirects,
		plain: r.Plain, anyType: o.AnyType, Sharing: c.sharing(o.Sharing),
	}
}

// sharing applies the settings of the client to those of a stream.
func (c *Client) sharing(s Sharing) Sharing {
	if c.Unshared {
		s.PerConnection = 1
	}
	return s
}

// begin takes the stream over from its timer. ctx ends with the attempt, and when the stream is stopped; end ends it.
func (s *Stream) begin() (ctx context.Context, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithCancel(s.group.ctx)
	s.raw, s.timer, s.cancel, s.cutting = nil, nil, cancel, nil
	if s.stopped != "" {
		cancel()
	}
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancel = nil
	}
}

func (s *Stream) setRaw(t io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = t
}

// contextWithin returns a context that ends after d, or for 0 with its parent only.
func contextWithin(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 0 {
		return context.WithTimeout(parent, d)
	}
	return context.WithCancel(parent)
}

// accept reports an event stream that opened, and prepares its reading.
func (s *Stream) accept(started time.Time, r *Response, t transport) {
	s.opened = true
	if st, ok := t.(*h2Stream); ok {
		r.HTTP2, r.FirstOnConnection = true, st.conn.firstOpened()
	}
	s.on.Opened(started, r)
	if s.on.FollowUp == nil {
		s.failures = 0
	} else {
		s.awaitFirst(r)
	}
	if !r.reused {
		processRamp.opened()
	}
	s.keeps = false
	s.body.begin(r, t)
	s.body.watch(r.At)
	s.parser.Reset(s.body.unpacked(r), s.opts.MaxEventSize)
}
