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
	// attach receives each connection before its use, so that another goroutine can close it. It returns false if the
	// exchange is to end.
	attach func(conn net.Conn) bool
	permit *permit // to dial; nil: none is needed
	debug  func() *Debug
	fresh  bool // no idle connection is used

	lateHeader bool // the permit ends with the connection, not with the response header
}

// open requests an event stream (HTML standard, section 9.2.3). Any other response is a *failure next to the
// response, whose connection is closed then.
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

// do dials, sends the request, follows redirects and reads the response header, until ctx ends. A redirect that
// cannot be followed, and the refusal of a proxy, are a *failure next to the response.
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

// roundTrip sends a request once, and reads the response head. It sends the request again, on a new connection, if
// the server had closed the idle one before it arrived.
func (d *exchange) roundTrip(ctx context.Context, req *request) (*Response, *failure) {
	a, fail := d.tryOnce(ctx, req)
	if fail != nil && errors.Is(fail.err, errUnreceived) {
		d.fresh = true
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
	return d.ask(ctx, req, a)
}

// connect returns an idle connection or a new one, with TLS if the URL is https: a response that has no more than its
// connection.
func (d *exchange) connect(ctx context.Context, req *request) (*Response, *failure) {
	through, err := d.client.Proxies.For(req.url)
	if err != nil {
		return nil, proxyFailure(ctx, err)
	}
	a := &Response{URL: req.url, proxy: through, conn: d.takeIdle(req)}
	if a.conn != nil {
		a.reused = true
	} else if a.conn, err = d.client.dial(ctx, through.Address(req.url)); err != nil {
		return nil, dialFailure(ctx, through.DialError(err))
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
		fail = d.shake(ctx, req, a)
	}
	if fail != nil {
		hangUp(raw)
		return nil, fail
	}
	if secure, ok := a.conn.(*tls.Conn); ok && req.url.Scheme == "https" {
		cs := secure.ConnectionState()
		a.TLS = &cs
	}
	d.connected()
	return a, nil
}

// connected releases what a request needs only until it has a connection.
func (d *exchange) connected() {
	d.permit.shaken()
	if d.lateHeader {
		d.permit.leave()
	}
}

// shake makes the handshakes on a new connection: with a proxy, and with the server of an https URL.
func (d *exchange) shake(ctx context.Context, req *request, a *Response) *failure {
	var err error
	if a.conn, err = a.proxy.Reach(ctx, a.conn, d.secure); err != nil {
		return proxyFailure(ctx, err)
	}
	if req.url.Scheme != "https" {
		return nil
	}
	secure := d.secureFor(a.conn, req.url.Hostname(), req.Protocol)
	a.conn = secure
	if err = secure.HandshakeContext(ctx); err == nil {
		return nil
	}
	if req.Protocol == HTTP2 && strings.HasSuffix(err.Error(), noProtocol) {
		err = fmt.Errorf("%w: %w", errNoH2, err)
	}
	return phaseFailure(ctx, ReasonTLS, "TLS handshake"+a.proxy.Through(), err)
}

// noProtocol is the error of crypto/tls if a server speaks none of the offered protocols (RFC 7301, section 3.2); it
// has no type of its own.
const noProtocol = "tls: no application protocol"

// ask sends the request on a connection, and reads the response head.
func (d *exchange) ask(ctx context.Context, req *request, a *Response) (*Response, *failure) {
	where := a.proxy.Through()
	if a.reused {
		where += " on a reused connection"
	}
	fail := func(doing string, err error) (*Response, *failure) {
		hangUp(a.conn)
		if a.reused {
			d.client.idleFor(req).NoteEnd()
		}
		return nil, phaseFailure(ctx, ReasonError, doing+where, err)
	}
	debug := d.newDebug()
	debug.request(req)
	sent, err := req.send(a.conn, a.proxy)
	if err != nil {
		return fail("send the request", a.unreceived(sent, err))
	}
	if err := a.readHead(req.method); err != nil {
		return fail("read the response header", a.unreceived(sent, err))
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

// secure is the client of a TLS connection to a proxy of that name.
func (d *exchange) secure(conn net.Conn, name string) *tls.Conn {
	return d.secureFor(conn, name, HTTP1)
}

// secureFor is the client of a TLS connection to a server of that name.
func (d *exchange) secureFor(conn net.Conn, name string, speak Protocol) *tls.Conn {
	return tls.Client(&underTLS{Conn: conn}, d.client.tlsConfig(name, speak))
}

// hold makes an open stream of the connection: it has all the time, and keeps its keys.
func (a *Response) hold() {
	_ = a.conn.SetDeadline(time.Time{}) // an error comes again at the first read
	for under := below(a.conn); under != nil; under = below(under.Conn) {
		under.open = true
	}
}

// hangUp closes a connection at once: for TLS without a close_notify, which could wait for seconds until there is
// room to send it.
func hangUp(conn net.Conn) { _ = rawOf(conn).Close() }

// rawOf returns the connection below TLS.
func rawOf(conn net.Conn) net.Conn {
	for under := below(conn); under != nil; under = below(conn) {
		conn = under.Conn
	}
	return conn
}

// below is what a connection of TLS is spoken on, nil for any other. Through a proxy that is reached by TLS there may
// be two of them, one in the other.
func below(conn net.Conn) *underTLS {
	if t, ok := conn.(*tls.Conn); ok {
		under, _ := t.NetConn().(*underTLS)
		return under
	}
	return nil
}
