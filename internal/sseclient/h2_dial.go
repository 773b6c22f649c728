package sseclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

var (
	errNoH2      = errors.New("the server does not speak HTTP/2 over TLS (ALPN h2)")
	errForwarded = errors.New("requests to http:// URLs go to the proxy in HTTP/1.1: HTTP/2 by prior knowledge needs a way without one (NO_PROXY)")
)

// mayShare reports whether a request may use HTTP/2.
func (r *request) mayShare() bool {
	return r.Protocol == HTTP2 || r.Protocol == HTTPAny && r.url.Scheme == "https"
}

// unprocessedTries is how often a request is sent again at once that no server has looked at.
const unprocessedTries = 5

// share is roundTrip for a request that may go over HTTP/2: on a connection that is there, or on a new one.
func (d *exchange) share(ctx context.Context, req *request) (*Response, *failure) {
	reported := false
	for try := 1; ; try++ {
		c, a, fail := d.place(ctx, req)
		switch {
		case fail != nil && errors.Is(fail.err, errUnprocessed) && try < unprocessedTries:
			continue
		case fail != nil:
			return nil, fail
		case c == nil: // HTTP/1.1
			return d.ask(ctx, req, a)
		}
		d.connected()
		a = &Response{URL: req.url, Remote: c.remote, TLS: c.tls, proxy: c.through}
		debug := d.newDebug()
		if !reported {
			debug.request(req)
			reported = true
		}
		err := c.ask(ctx, req, a)
		if errors.Is(err, errUnprocessed) && try < unprocessedTries {
			continue
		}
		if err != nil {
			return nil, phaseFailure(ctx, ReasonError, "read the response header"+c.through.Through(), err)
		}
		debug.response(a)
		if !d.attach(a.conn) {
			hangUp(a.conn)
			return nil, &failure{reason: ReasonClient, err: net.ErrClosed}
		}
		return a, nil
	}
}

// place is a place on a connection of HTTP/2, or a connection of HTTP/1.1 that the server wants instead.
func (d *exchange) place(ctx context.Context, req *request) (*h2Conn, *Response, *failure) {
	pool, key := &d.client.pool, h2Key{req.url.Scheme, strings.ToLower(req.url.Host), req.Sharing}
	singleStream := req.PerConnection == 1
	if !singleStream {
		c, err := pool.place(ctx, key, d.client.DialPatience)
		if err != nil {
			return nil, nil, phaseFailure(ctx, ReasonError, "wait for a connection", err)
		}
		if c != nil {
			return c, nil, nil
		}
	}
	c, a, fail := d.dial2(ctx, req)
	if !singleStream {
		pool.dialed(key, c, a != nil)
	}
	return c, a, fail
}

// dial2 makes a connection of HTTP/2, with a place on it reserved.
func (d *exchange) dial2(ctx context.Context, req *request) (*h2Conn, *Response, *failure) {
	var raw net.Conn
	stop := func() bool { return true }
	dialer := *d // the connection is not the stream's: it may outlive that
	dialer.attach = func(conn net.Conn) bool {
		raw = conn
		stop = context.AfterFunc(ctx, func() { hangUp(conn) })
		return ctx.Err() == nil
	}
	a, fail := dialer.connect(ctx, req)
	if fail != nil {
		stop()
		return nil, nil, fail
	}
	if a.proxy.Forwards() {
		stop()
		hangUp(a.conn)
		return nil, nil, &failure{reason: ReasonProxy, err: fmt.Errorf("%w%s", errForwarded, a.proxy.Through())}
	}
	if a.TLS != nil && a.TLS.NegotiatedProtocol != alpn2 {
		switch {
		case req.Protocol == HTTP2:
			stop()
			hangUp(a.conn)
			return nil, nil, &failure{reason: ReasonTLS, err: errNoH2}
		case !stop() || !d.attach(raw):
			hangUp(a.conn)
			return nil, nil, &failure{reason: ReasonClient, err: net.ErrClosed}
		}
		return nil, a, nil
	}
	c := newH2Conn(a, &d.client.pool, int(req.PerConnection))
	err := c.greet()
	if stopped := stop(); err == nil && !stopped {
		err = cmp.Or(ctx.Err(), net.ErrClosed)
	}
	if err == nil {
		a.hold()
		err = c.start()
	}
	if err != nil {
		c.hangUp()
		return nil, nil, phaseFailure(ctx, ReasonError, "begin HTTP/2", err)
	}
	if err = c.awaitSettings(ctx); err != nil {
		c.retire()
		return nil, nil, phaseFailure(ctx, ReasonError, "begin HTTP/2", err)
	}
	return c, nil, nil
}
