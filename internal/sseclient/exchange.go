package sseclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/http1"
)

// An exchange sends a request on an idle or a new connection, and follows redirects.
type exchange struct {
	client *Client
	// attach receives each connection before its use, so that the caller can close the connection. If attach returns
	// false, the exchange ends.
	attach     func(conn net.Conn) bool
	permit     *permit       // to dial; nil: not needed
	debug      func() *Debug // Options.Debug
	skipIdle   bool          // use no idle connection
	lateHeader bool          // release the permit when the connection is open, not after the response header
}

// open requests an event stream (HTML standard, section 9.2.3). For any other response it closes the connection and
// returns a failure with the response.
func (e *exchange) open(ctx context.Context, req *request) (*Response, *failure) {
	r, fail := e.do(ctx, req)
	if fail != nil {
		return r, fail
	}
	if fail := r.validate(req); fail != nil {
		hangUp(r.conn)
		return r, fail
	}
	return r, nil
}

// do dials, sends the request, follows redirects and reads the response header, until ctx ends. It stores cookies in
// the jar of the request. A redirect after maxRedirects is a response like any other. For a redirect that cannot be
// followed, and for a refusal by a proxy that forwards the request, do returns a failure with the response.
func (e *exchange) do(ctx context.Context, req *request) (*Response, *failure) {
	requestURL := req.url
	for hops := 0; ; hops++ {
		resp, fail := e.roundTrip(ctx, req)
		if fail != nil {
			return nil, fail
		}
		if req.jar != nil {
			if cookies := (&http.Response{Header: resp.Header}).Cookies(); len(cookies) > 0 {
				req.jar.SetCookies(req.url, cookies)
			}
		}
		if location := resp.Location(); location != "" && hops < req.maxRedirects {
			hangUp(resp.conn)
			next, err := req.redirect(resp.Status, location)
			if err != nil {
				return resp, &failure{reason: ReasonStatus, err: err, status: resp.Status}
			}
			req = next
			continue
		}
		if resp.proxy.Forwards() && resp.Status == http.StatusProxyAuthRequired { // no service sends this status
			err := resp.proxy.RefusalError("the request", http1.StatusText(resp.Status), resp.Header, resp.refusal())
			hangUp(resp.conn)
			return resp, &failure{reason: ReasonProxy, err: err, status: resp.Status}
		}
		resp.requestURL, resp.OtherOrigin = requestURL, Origin(req.url) != Origin(requestURL)
		return resp, nil
	}
}

// roundTrip sends a request and reads the response header. If the server closed an idle connection before the request
// arrived, roundTrip sends the request again on a new connection.
func (e *exchange) roundTrip(ctx context.Context, req *request) (*Response, *failure) {
	resp, fail := e.tryOnce(ctx, req)
	if fail != nil && errors.Is(fail.err, errUnreceived) {
		e.skipIdle = true
		return e.tryOnce(ctx, req)
	}
	return resp, fail
}

// tryOnce is roundTrip without a second attempt.
func (e *exchange) tryOnce(ctx context.Context, req *request) (*Response, *failure) {
	if req.mayUseHTTP2() {
		return e.tryHTTP2(ctx, req)
	}
	resp, fail := e.connect(ctx, req)
	if fail != nil {
		return nil, fail
	}
	return e.sendRequest(ctx, req, resp)
}

// connect takes an idle connection or dials a new one, with TLS for https, and calls releasePermit. It returns a
// Response without a header.
func (e *exchange) connect(ctx context.Context, req *request) (*Response, *failure) {
	route, err := e.client.Proxies.For(req.url)
	if err != nil {
		return nil, proxyFailure(ctx, err)
	}
	resp := &Response{URL: req.url, proxy: route, conn: e.takeIdle(req)}
	if resp.conn != nil {
		resp.isReused = true
	} else if resp.conn, err = e.client.dial(ctx, route.Address(req.url)); err != nil {
		return nil, dialFailure(ctx, route.DialError(err))
	}
	raw := rawOf(resp.conn)
	fail := (*failure)(nil)
	if !e.attach(raw) {
		fail = &failure{reason: ReasonClient, err: net.ErrClosed}
	} else if deadline, ok := ctx.Deadline(); ok {
		_ = raw.SetDeadline(deadline)
	}
	if fail == nil && !resp.isReused {
		resp.Remote = raw.RemoteAddr()
		fail = e.handshake(ctx, req, resp)
	}
	if fail != nil {
		hangUp(raw)
		return nil, fail
	}
	if tlsClient, ok := resp.conn.(*tls.Conn); ok && req.url.Scheme == "https" {
		cs := tlsClient.ConnectionState()
		resp.TLS = &cs
	}
	e.releasePermit()
	return resp, nil
}

// releasePermit releases the parts of the permit that an exchange no longer needs once it has a connection.
func (e *exchange) releasePermit() {
	e.permit.releaseHandshake()
	if e.lateHeader {
		e.permit.release()
	}
}

func (e *exchange) handshake(ctx context.Context, req *request, resp *Response) *failure {
	var err error
	if resp.conn, err = resp.proxy.Reach(ctx, resp.conn, e.secure); err != nil {
		return proxyFailure(ctx, err)
	}
	if req.url.Scheme != "https" {
		return nil
	}
	secure := e.tlsClientFor(resp.conn, req.url.Hostname(), req.Protocol)
	resp.conn = secure
	if err = secure.HandshakeContext(ctx); err == nil {
		return nil
	}
	if req.Protocol == HTTP2 && strings.HasSuffix(err.Error(), noProtocol) {
		err = fmt.Errorf("%w: %w", errNoH2OverTLS, err)
	}
	return operationFailure(ctx, ReasonTLS, "TLS handshake"+resp.proxy.ErrorSuffix(), err)
}

// noProtocol is the text of the untyped error of crypto/tls if a server supports no offered protocol (RFC 7301, 3.2).
const noProtocol = "tls: no application protocol"

func (e *exchange) sendRequest(ctx context.Context, req *request, resp *Response) (*Response, *failure) {
	location := resp.proxy.ErrorSuffix()
	if resp.isReused {
		location += " on a reused connection"
	}
	fail := func(operation string, err error) (*Response, *failure) {
		hangUp(resp.conn)
		cause := operationFailure(ctx, ReasonError, operation+location, err)
		if resp.isReused && (cause.reason == ReasonTruncated || cause.reason == ReasonReset) {
			e.client.idleFor(req).NoteEnd()
		}
		return nil, cause
	}
	debug := e.newDebug()
	debug.request(req)
	sent, sendErr := req.send(resp.conn, resp.proxy)
	if sendErr != nil && sent == 0 {
		return fail("send the request", resp.markUnreceived(sent, sendErr))
	}
	err := resp.readHead(req.method) // a server may respond and close the connection before it has read the whole request
	switch {
	case err != nil && sendErr != nil:
		return fail("send the request", sendErr)
	case err != nil:
		return fail("read the response header", resp.markUnreceived(sent, err))
	case sendErr != nil:
		resp.persistent = false
	}
	if resp.persistent {
		if resp.idle = e.client.idleFor(req); resp.idle != nil {
			resp.idle.ApplyKeepAlive(resp.Header)
		}
	}
	if resp.isReused {
		e.client.idleFor(req).NoteResponse()
	}
	debug.response(resp)
	return resp, nil
}

func (e *exchange) secure(conn net.Conn, name string) *tls.Conn {
	return e.tlsClientFor(conn, name, HTTP1)
}

func (e *exchange) tlsClientFor(conn net.Conn, name string, protocol Protocol) *tls.Conn {
	return tls.Client(&tlsSocket{Conn: conn}, e.client.tlsConfig(name, protocol))
}

// keepOpen removes the deadline of the connection and refuses further TLS handshakes.
func (r *Response) keepOpen() {
	_ = r.conn.SetDeadline(time.Time{}) // the first read returns the same error
	for socket := tlsSocketOf(r.conn); socket != nil; socket = tlsSocketOf(socket.Conn) {
		socket.open = true
	}
}

// hangUp closes a connection without a TLS close_notify alert, which could block for seconds if the peer does not read.
func hangUp(conn net.Conn) { _ = rawOf(conn).Close() }

func rawOf(conn net.Conn) net.Conn {
	for socket := tlsSocketOf(conn); socket != nil; socket = tlsSocketOf(conn) {
		conn = socket.Conn
	}
	return conn
}

// tlsSocketOf returns the connection below TLS, or nil if conn does not use TLS. The connection below TLS uses TLS
// itself if the server is reached through a proxy with TLS.
func tlsSocketOf(conn net.Conn) *tlsSocket {
	if t, ok := conn.(*tls.Conn); ok {
		socket, _ := t.NetConn().(*tlsSocket)
		return socket
	}
	return nil
}
