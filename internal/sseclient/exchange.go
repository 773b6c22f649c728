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
)

// An exchange opens connections for a request and its redirects.
type exchange struct {
	client *Client
	// attach gets each connection before its use, so that another goroutine can close it. It returns false to end the
	// exchange.
	attach   func(conn net.Conn) bool
	permit   *permit // to dial; nil: not needed
	debug    func() *Debug
	skipIdle bool // use no idle connection

	lateHeader bool // the permit ends with the connection, not with the response header
}

// open requests an event stream (HTML standard, section 9.2.3). For any other response it closes the connection and
// returns a failure with the response.
func (d *exchange) open(ctx context.Context, req *request) (*Response, *failure) {
	r, fail := d.do(ctx, req)
	if fail != nil {
		return r, fail
	}
	if fail := r.validate(req); fail != nil {
		hangUp(r.conn)
		return r, fail
	}
	return r, nil
}

// do dials, sends the request, follows redirects and reads the response header, until ctx ends. For a redirect that
// cannot be followed, and for the refusal of a proxy, it returns a failure with the response.
func (d *exchange) do(ctx context.Context, req *request) (*Response, *failure) {
	requestURL := req.url
	for hops := 0; ; hops++ {
		a, fail := d.roundTrip(ctx, req)
		if fail != nil {
			return nil, fail
		}
		if req.jar != nil {
			if cookies := (&http.Response{Header: a.Header}).Cookies(); len(cookies) > 0 {
				req.jar.SetCookies(req.url, cookies)
			}
		}
		if location := a.Location(); location != "" && hops < req.maxRedirects {
			hangUp(a.conn)
			next, err := req.redirect(a.Status, location)
			if err != nil {
				return a, &failure{reason: ReasonStatus, err: err, status: a.Status}
			}
			req = next
			continue
		}
		if a.proxyRefused() {
			err := a.proxy.RefusalError("the request", fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status)), a.Header, a.refusal())
			hangUp(a.conn)
			return a, &failure{reason: ReasonProxy, err: err, status: a.Status}
		}
		a.requestURL, a.OtherOrigin = requestURL, Origin(req.url) != Origin(requestURL)
		return a, nil
	}
}

// roundTrip sends a request and reads the response head. If the server had closed an idle connection before the
// request arrived, roundTrip sends it again on a new connection.
func (d *exchange) roundTrip(ctx context.Context, req *request) (*Response, *failure) {
	a, fail := d.tryOnce(ctx, req)
	if fail != nil && errors.Is(fail.err, errUnreceived) {
		d.skipIdle = true
		return d.tryOnce(ctx, req)
	}
	return a, fail
}

func (d *exchange) tryOnce(ctx context.Context, req *request) (*Response, *failure) {
	if req.mayShare() {
		return d.share(ctx, req)
	}
	a, fail := d.connect(ctx, req)
	if fail != nil {
		return nil, fail
	}
	return d.sendRequest(ctx, req, a)
}

// connect returns a Response that has only a connection: an idle or a new one, with TLS if the URL is https.
func (d *exchange) connect(ctx context.Context, req *request) (*Response, *failure) {
	route, err := d.client.Proxies.For(req.url)
	if err != nil {
		return nil, proxyFailure(ctx, err)
	}
	a := &Response{URL: req.url, proxy: route, conn: d.takeIdle(req)}
	if a.conn != nil {
		a.reused = true
	} else if a.conn, err = d.client.dial(ctx, route.Address(req.url)); err != nil {
		return nil, dialFailure(ctx, route.DialError(err))
	}
	raw := rawOf(a.conn)
	fail := (*failure)(nil)
	if !d.attach(raw) {
		fail = &failure{reason: ReasonClient, err: net.ErrClosed}
	} else if deadline, ok := ctx.Deadline(); ok {
		_ = raw.SetDeadline(deadline)
	}
	if fail == nil && !a.reused {
		a.Remote = raw.RemoteAddr()
		fail = d.handshake(ctx, req, a)
	}
	if fail != nil {
		hangUp(raw)
		return nil, fail
	}
	if tlsClient, ok := a.conn.(*tls.Conn); ok && req.url.Scheme == "https" {
		cs := tlsClient.ConnectionState()
		a.TLS = &cs
	}
	d.releasePermit()
	return a, nil
}

// releasePermit releases the parts of the permit that a request with a connection does not need.
func (d *exchange) releasePermit() {
	d.permit.releaseHandshake()
	if d.lateHeader {
		d.permit.leave()
	}
}

// handshake makes the handshakes of a new connection: with a proxy, and with the server of an https URL.
func (d *exchange) handshake(ctx context.Context, req *request, a *Response) *failure {
	var err error
	if a.conn, err = a.proxy.Reach(ctx, a.conn, d.secure); err != nil {
		return proxyFailure(ctx, err)
	}
	if req.url.Scheme != "https" {
		return nil
	}
	secure := d.tlsClientFor(a.conn, req.url.Hostname(), req.Protocol)
	a.conn = secure
	if err = secure.HandshakeContext(ctx); err == nil {
		return nil
	}
	if req.Protocol == HTTP2 && strings.HasSuffix(err.Error(), noProtocol) {
		err = fmt.Errorf("%w: %w", errNoH2, err)
	}
	return phaseFailure(ctx, ReasonTLS, "TLS handshake"+a.proxy.Through(), err)
}

// noProtocol is the text of the crypto/tls error for a server that supports none of the offered protocols (RFC 7301,
// section 3.2). The error has no type.
const noProtocol = "tls: no application protocol"

// sendRequest sends the request on a connection and reads the response head.
func (d *exchange) sendRequest(ctx context.Context, req *request, a *Response) (*Response, *failure) {
	location := a.proxy.Through()
	if a.reused {
		location += " on a reused connection"
	}
	fail := func(phase string, err error) (*Response, *failure) {
		hangUp(a.conn)
		if a.reused {
			d.client.idleFor(req).NoteEnd()
		}
		return nil, phaseFailure(ctx, ReasonError, phase+location, err)
	}
	debug := d.newDebug()
	debug.request(req)
	sent, err := req.send(a.conn, a.proxy)
	if err != nil {
		return fail("send the request", a.markUnreceived(sent, err))
	}
	if err := a.readHead(req.method); err != nil {
		return fail("read the response header", a.markUnreceived(sent, err))
	}
	if a.persistent {
		if a.idle = d.client.idleFor(req); a.idle != nil {
			a.idle.Limit(a.Header)
		}
	}
	if a.reused {
		d.client.idleFor(req).NoteResponse()
	}
	debug.response(a)
	return a, nil
}

// tlsClient returns the client of a TLS connection to the named proxy.
func (d *exchange) secure(conn net.Conn, name string) *tls.Conn {
	return d.tlsClientFor(conn, name, HTTP1)
}

// tlsClientFor returns the client of a TLS connection to the named server.
func (d *exchange) tlsClientFor(conn net.Conn, name string, speak Protocol) *tls.Conn {
	return tls.Client(&tlsSocket{Conn: conn}, d.client.tlsConfig(name, speak))
}

// keepOpen removes the deadline of the connection and refuses further TLS handshakes.
func (a *Response) keepOpen() {
	_ = a.conn.SetDeadline(time.Time{}) // the first read returns the same error
	for socket := tlsSocketOf(a.conn); socket != nil; socket = tlsSocketOf(socket.Conn) {
		socket.open = true
	}
}

// hangUp closes a connection without a close_notify of TLS, which could block for seconds if the peer does not read.
func hangUp(conn net.Conn) { _ = rawOf(conn).Close() }

// rawOf returns the connection below TLS.
func rawOf(conn net.Conn) net.Conn {
	for socket := tlsSocketOf(conn); socket != nil; socket = tlsSocketOf(conn) {
		conn = socket.Conn
	}
	return conn
}

// tlsSocketOf returns the connection below TLS, nil if there is no TLS. If TLS to the server runs through TLS to a
// proxy, the connection below has one, too.
func tlsSocketOf(conn net.Conn) *tlsSocket {
	if t, ok := conn.(*tls.Conn); ok {
		socket, _ := t.NetConn().(*tlsSocket)
		return socket
	}
	return nil
}
