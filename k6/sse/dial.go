package sse

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"go.k6.io/k6/v2/lib"
)

const (
	maxHeaderBytes = 64 << 10
	headBuffer     = 1 << 10 // only while a head is read
	maxInterim     = 10      // 1xx responses before the final one
)

// answer is a response whose head is complete.
type answer struct {
	conn   net.Conn // to read from: the TLS or the dialed connection
	status int
	proto  string
	header http.Header
	url    *url.URL // after redirects
	at     time.Time
	remote net.Addr
	tls    *tls.ConnectionState
	frame  framing
	left   []byte // bytes of the body that came with the head
}

// link is what a dialer reports the connection to before it uses it, so that
// another goroutine can close it. It returns false where it is to give up.
type link interface {
	attach(conn net.Conn) bool
}

// dialer opens event streams with the VU's network settings.
type dialer struct {
	m     *module
	state *lib.State
	link  link
}

// open dials, sends the request, follows redirects and reads the response head,
// until ctx ends. It returns an answer only for an event stream (section 9.2.3 of
// the HTML standard); otherwise a *failure, beside the answer where there was one,
// whose connection is closed then.
func (d *dialer) open(ctx context.Context, req *request) (*answer, *failure) {
	for hops := 0; ; hops++ {
		a, resp, fail := d.roundTrip(ctx, req) //nolint:bodyclose // its body is read from a.conn, which the caller closes
		if fail != nil {
			return nil, fail
		}
		if req.jar != nil {
			if cookies := resp.Cookies(); len(cookies) > 0 {
				req.jar.SetCookies(req.url, cookies)
			}
		}
		location := resp.Header.Get("Location")
		if isRedirect(a.status) && location != "" && hops < req.maxRedirects {
			hangUp(a.conn)
			next, err := req.redirect(a.status, location)
			if err != nil {
				return a, &failure{reason: ReasonStatus, err: err, status: a.status}
			}
			req = next
			continue
		}
		if fail := judge(a); fail != nil {
			hangUp(a.conn)
			return a, fail
		}
		return a, nil
	}
}

func isRedirect(status int) bool {
	return slices.Contains([]int{301, 302, 303, 307, 308}, status)
}

// roundTrip does one dial, handshake, request and response head.
func (d *dialer) roundTrip(ctx context.Context, req *request) (*answer, *http.Response, *failure) {
	raw, err := d.state.Dialer.DialContext(ctx, "tcp", address(req.url))
	if err != nil {
		return nil, nil, dialFailure(ctx, err)
	}
	fail := func(f *failure) (*answer, *http.Response, *failure) {
		hangUp(raw)
		return nil, nil, f
	}
	if !d.link.attach(raw) {
		return fail(&failure{reason: ReasonClient, err: net.ErrClosed})
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = raw.SetDeadline(deadline)
	}
	a := &answer{conn: raw, url: req.url, remote: raw.RemoteAddr()}
	if req.url.Scheme == "https" {
		conn := tls.Client(raw, d.m.tlsConfig(d.state, req.url.Hostname()))
		if err := conn.HandshakeContext(ctx); err != nil {
			return fail(phaseFailure(ctx, ReasonTLS, "TLS handshake", err))
		}
		cs := conn.ConnectionState()
		a.conn, a.tls = conn, &cs
	}
	if err := req.send(a.conn); err != nil {
		return fail(phaseFailure(ctx, ReasonError, "send the request", err))
	}
	resp, err := a.readHead(req.method)
	if err != nil {
		return fail(phaseFailure(ctx, ReasonError, "read the response header", err))
	}
	return a, resp, nil
}

// hangUp closes a connection at once: for TLS without a close_notify, which could
// wait for seconds for room to be sent.
func hangUp(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	_ = conn.Close()
}
