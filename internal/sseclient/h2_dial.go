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
	errNoH2OverTLS = errors.New("the server does not support HTTP/2 over TLS (ALPN h2)")
	errPlainProxy  = errors.New("HTTP/2 without TLS is not possible through an HTTP proxy; add the host to NO_PROXY")
)

func (r *request) mayUseHTTP2() bool {
	return r.Protocol == HTTP2 || r.Protocol == HTTPAny && r.url.Scheme == "https"
}

// unprocessedTries is the maximum number of attempts to send a request that no server has processed.
const unprocessedTries = 5

// tryHTTP2 is tryOnce for a request that may use HTTP/2. It uses an existing connection or dials a new one.
func (e *exchange) tryHTTP2(ctx context.Context, req *request) (*Response, *failure) {
	isLogged := false
	for try := 1; ; try++ {
		c, resp, fail := e.reserveConn(ctx, req)
		switch {
		case fail != nil && errors.Is(fail.err, errUnprocessed) && try < unprocessedTries:
			continue
		case fail != nil:
			return nil, fail
		case c == nil: // HTTP/1.1
			return e.sendRequest(ctx, req, resp)
		}
		e.releasePermit()
		resp = &Response{URL: req.url, Remote: c.remote, TLS: c.tls, proxy: c.route}
		debug := e.newDebug()
		if !isLogged {
			debug.request(req)
			isLogged = true
		}
		err := c.sendRequest(ctx, req, resp)
		if errors.Is(err, errUnprocessed) && try < unprocessedTries {
			continue
		}
		if err != nil {
			return nil, operationFailure(ctx, ReasonError, "read the response header"+c.route.ErrorSuffix(), err)
		}
		debug.response(resp)
		if !e.attach(resp.conn) {
			hangUp(resp.conn)
			return nil, &failure{reason: ReasonClient, err: net.ErrClosed}
		}
		return resp, nil
	}
}

// reserveConn returns an HTTP/2 connection with a reservation, or a Response with the connection for HTTP/1.1.
func (e *exchange) reserveConn(ctx context.Context, req *request) (*h2Conn, *Response, *failure) {
	pool, key := &e.client.pool, siteKey{req.url.Scheme, strings.ToLower(req.url.Host), req.Sharing}
	singleStream := req.StreamsPerConnection == 1
	if !singleStream {
		c, err := pool.reserve(ctx, key, e.client.DialPatience)
		if err != nil {
			return nil, nil, operationFailure(ctx, ReasonError, "wait for a connection", err)
		}
		if c != nil {
			return c, nil, nil
		}
	}
	c, resp, fail := e.dialHTTP2(ctx, req)
	if !singleStream {
		pool.endDial(key, c, resp != nil)
	}
	return c, resp, fail
}

// dialHTTP2 is reserveConn for a new connection.
func (e *exchange) dialHTTP2(ctx context.Context, req *request) (*h2Conn, *Response, *failure) {
	var raw net.Conn
	stop := func() bool { return true }
	dialer := *e // the connection may outlive the stream
	dialer.attach = func(conn net.Conn) bool {
		raw = conn
		stop = context.AfterFunc(ctx, func() { hangUp(conn) })
		return ctx.Err() == nil
	}
	resp, fail := dialer.connect(ctx, req)
	if fail != nil {
		stop()
		return nil, nil, fail
	}
	if resp.proxy.Forwards() {
		stop()
		hangUp(resp.conn)
		return nil, nil, &failure{reason: ReasonProxy, err: fmt.Errorf("%w%s", errPlainProxy, resp.proxy.ErrorSuffix())}
	}
	if resp.TLS != nil && resp.TLS.NegotiatedProtocol != alpn2 {
		switch {
		case req.Protocol == HTTP2:
			stop()
			hangUp(resp.conn)
			return nil, nil, &failure{reason: ReasonTLS, err: errNoH2OverTLS}
		case !stop() || !e.attach(raw):
			hangUp(resp.conn)
			return nil, nil, &failure{reason: ReasonClient, err: net.ErrClosed}
		}
		return nil, resp, nil
	}
	c := newH2Conn(resp, &e.client.pool, int(req.StreamsPerConnection))
	err := c.sendPreface()
	if stopped := stop(); err == nil && !stopped {
		err = cmp.Or(ctx.Err(), net.ErrClosed)
	}
	if err == nil {
		resp.keepOpen()
		err = c.start()
	}
	if err != nil {
		c.hangUp()
		return nil, nil, operationFailure(ctx, ReasonError, "start HTTP/2", err)
	}
	if err = c.awaitSettings(ctx); err != nil {
		c.retire()
		return nil, nil, operationFailure(ctx, ReasonError, "start HTTP/2", err)
	}
	return c, nil, nil
}
