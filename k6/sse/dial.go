package sse

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/redirect"
)

// answer is a response whose head is complete.
type answer struct {
	conn        net.Conn // to read from: the TLS or the dialed connection
	status      int
	proto       string
	header      http.Header
	asked       *url.URL // before redirects
	url         *url.URL // after redirects
	otherOrigin bool     // url is of another origin than asked
	at          time.Time
	remote      net.Addr
	proxy       *proxy.Proxy // that it came through
	tls         *tls.ConnectionState
	frame       framing
	left        []byte // bytes of the body that came with the head
}

// dialer opens event streams with the VU's network settings.
type dialer struct {
	m     *module
	state *lib.State
	// attach is told of each connection before it is used, so that another goroutine can
	// close it. It returns false where the dialer is to give up.
	attach func(conn net.Conn) bool
	turn   *turn // to dial; nil where none was waited for
	tags   *metrics.TagsAndMeta
}

// open is exchange for an event stream (section 9.2.3 of the HTML standard). Any other
// answer is a *failure, beside the answer, whose connection is closed then.
func (d *dialer) open(ctx context.Context, req *request) (*answer, *failure) {
	a, fail := d.exchange(ctx, req)
	if fail != nil {
		return a, fail
	}
	if fail := judge(a, req); fail != nil {
		hangUp(a.conn)
		return a, fail
	}
	return a, nil
}

// exchange dials, sends the request, follows redirects and reads the response head,
// until ctx ends. A redirect that leads nowhere is a *failure beside its answer.
func (d *dialer) exchange(ctx context.Context, req *request) (*answer, *failure) {
	asked := req.url
	for hops := 0; ; hops++ {
		a, fail := d.roundTrip(ctx, req)
		if fail != nil {
			return nil, fail
		}
		if req.jar != nil {
			if cookies := (&http.Response{Header: a.header}).Cookies(); len(cookies) > 0 {
				req.jar.SetCookies(req.url, cookies)
			}
		}
		location := a.header.Get("Location")
		if isRedirect(a.status) && location != "" && hops < req.maxRedirects {
			hangUp(a.conn)
			next, err := req.redirect(a.status, location)
			if err != nil {
				return a, &failure{reason: ReasonStatus, err: err, status: a.status}
			}
			req = next
			continue
		}
		a.asked, a.otherOrigin = asked, redirect.Origin(req.url) != redirect.Origin(asked)
		return a, nil
	}
}

func isRedirect(status int) bool {
	return slices.Contains([]int{301, 302, 303, 307, 308}, status)
}

// roundTrip does one dial, handshake, request and response head.
func (d *dialer) roundTrip(ctx context.Context, req *request) (*answer, *failure) {
	if req.mayShare() {
		return d.share(ctx, req)
	}
	a, fail := d.connect(ctx, req)
	if fail != nil {
		return nil, fail
	}
	return d.ask(ctx, req, a)
}

// connect does the dial, and for TLS the handshake: an answer that has no more than its connection.
func (d *dialer) connect(ctx context.Context, req *request) (*answer, *failure) {
	through, err := d.m.proxies.For(req.url)
	if err != nil {
		return nil, proxyFailure(ctx, err)
	}
	raw, err := d.state.Dialer.DialContext(ctx, "tcp", through.Address(req.url))
	if err != nil {
		return nil, dialFailure(ctx, through.Undialed(err))
	}
	fail := func(f *failure) (*answer, *failure) {
		hangUp(raw)
		return nil, f
	}
	if !d.attach(raw) {
		return fail(&failure{reason: ReasonClient, err: net.ErrClosed})
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = raw.SetDeadline(deadline)
	}
	conn, err := through.Reach(ctx, raw, d.secure)
	if err != nil {
		return fail(proxyFailure(ctx, err))
	}
	a := &answer{conn: conn, url: req.url, remote: raw.RemoteAddr(), proxy: through}
	if req.url.Scheme == "https" {
		conn := d.secureFor(conn, req.url.Hostname(), req.protocol)
		if err := conn.HandshakeContext(ctx); err != nil {
			if req.protocol == protocol2 && strings.HasSuffix(err.Error(), noProtocol) {
				err = fmt.Errorf("%w: %w", errNoH2, err)
			}
			return fail(phaseFailure(ctx, ReasonTLS, "TLS handshake"+through.Through(), err))
		}
		cs := conn.ConnectionState()
		a.conn, a.tls = conn, &cs
	}
	d.turn.shaken()
	return a, nil
}

// noProtocol is what crypto/tls says where a server speaks none of the protocols it was offered (RFC 7301, section 3.2); its
// error has no type of its own.
const noProtocol = "tls: no application protocol"

// ask sends the request on a connection, and reads the response head.
func (d *dialer) ask(ctx context.Context, req *request, a *answer) (*answer, *failure) {
	fail := func(doing string, err error) (*answer, *failure) {
		hangUp(a.conn)
		return nil, phaseFailure(ctx, ReasonError, doing, err)
	}
	debug := d.debug()
	if err := debug.send(req, a); err != nil {
		return fail("send the request"+a.proxy.Through(), err)
	}
	if err := a.readHead(req.method); err != nil {
		return fail("read the response header"+a.proxy.Through(), err)
	}
	debug.answered(a)
	return a, nil
}

// secure is the client of a TLS connection to a proxy of that name.
func (d *dialer) secure(conn net.Conn, name string) *tls.Conn {
	return d.secureFor(conn, name, protocol1)
}

// secureFor is the client of a TLS connection to a server of that name.
func (d *dialer) secureFor(conn net.Conn, name string, speak protocol) *tls.Conn {
	return tls.Client(&underTLS{Conn: conn}, d.m.tlsConfig(d.state, name, speak))
}

// hold makes an open stream of the connection: it has all the time, and keeps its keys.
func (a *answer) hold() {
	_ = a.conn.SetDeadline(time.Time{}) // an error comes again at the first read
	for under := below(a.conn); under != nil; under = below(under.Conn) {
		under.open = true
	}
}

// hangUp closes a connection at once: for TLS without a close_notify, which could
// wait for seconds for room to be sent.
func hangUp(conn net.Conn) {
	for under := below(conn); under != nil; under = below(conn) {
		conn = under.Conn
	}
	_ = conn.Close()
}

// below is what a connection of TLS is spoken on, nil for any other. Through a proxy that is reached by TLS there may be
// two of them, one in the other.
func below(conn net.Conn) *underTLS {
	if t, ok := conn.(*tls.Conn); ok {
		under, _ := t.NetConn().(*underTLS)
		return under
	}
	return nil
}
