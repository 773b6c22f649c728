package sse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"
)

// protocol is the option http: which versions of HTTP a stream may speak.
type protocol uint8

const (
	protocolAuto protocol = iota // over TLS what the server chooses (ALPN), else HTTP/1.1
	protocol1                    // HTTP/1.1
	protocol2                    // HTTP/2, over plain HTTP by prior knowledge
)

// ALPN names of the versions (RFC 7301, section 6).
const (
	alpn1 = "http/1.1"
	alpn2 = "h2"
)

// alpn is what a client offers in the TLS handshake.
func (p protocol) alpn() []string {
	switch p {
	case protocol1:
		return []string{alpn1}
	case protocol2:
		return []string{alpn2}
	default:
		return []string{alpn2, alpn1}
	}
}

var (
	errNoH2      = errors.New("the server does not speak HTTP/2 over TLS (ALPN h2)")
	errForwarded = errors.New("requests to http:// URLs go to the proxy in HTTP/1.1: HTTP/2 by prior knowledge needs a way without one (NO_PROXY)")
)

// sharing is how a stream may share a connection with others.
type sharing struct {
	perConnection uint16 // streams on one over HTTP/2; 0: as many as the server allows
	protocol      protocol
}

// set reads the options http and streamsPerConnection.
func (o *sharing) set(name string, v sobek.Value) error {
	if name == "streamsPerConnection" {
		n, err := parseInt(v, 0)
		if err == nil && n > math.MaxUint16 {
			err = fmt.Errorf("%d is over %d", n, math.MaxUint16)
		}
		o.perConnection = uint16(n) //nolint:gosec // G115: checked above
		return err
	}
	return o.speak(v.String())
}

// speak sets which versions of HTTP a stream may speak.
func (o *sharing) speak(version string) error {
	switch version {
	case "auto":
		o.protocol = protocolAuto
	case "1.1":
		o.protocol = protocol1
	case "2":
		o.protocol = protocol2
	default:
		return fmt.Errorf("%q is no version of HTTP: write 'auto', '1.1' or '2'", version)
	}
	return nil
}

// share has the request go by these options, and those of k6.
func (r *request) share(o sharing, state *lib.State) {
	if r.sharing = o; state.Options.NoConnectionReuse.Bool {
		r.perConnection = 1
	}
}

// mayShare says that a request may go over HTTP/2.
func (r *request) mayShare() bool {
	return r.protocol == protocol2 || r.protocol == protocolAuto && r.url.Scheme == "https"
}

// unprocessedTries is how often a request is sent again at once that no server has looked at.
const unprocessedTries = 5

// share is roundTrip for a request that may go over HTTP/2: on a connection that is there, or on a new one.
func (d *dialer) share(ctx context.Context, req *request) (*answer, *failure) {
	told := false
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
		d.turn.shaken()
		a = &answer{url: req.url, remote: c.remote, tls: c.tls, proxy: c.through}
		debug := d.debug()
		if !told {
			debug.tell(req)
			told = true
		}
		err := c.ask(ctx, req, a)
		if errors.Is(err, errUnprocessed) && try < unprocessedTries {
			continue
		}
		if err != nil {
			return nil, phaseFailure(ctx, ReasonError, "read the response header"+c.through.Through(), err)
		}
		debug.answered(a)
		if !d.attach(a.conn) {
			hangUp(a.conn)
			return nil, &failure{reason: ReasonClient, err: net.ErrClosed}
		}
		return a, nil
	}
}

// place is a place on a connection of HTTP/2, or a connection of HTTP/1.1 that the server wants instead.
func (d *dialer) place(ctx context.Context, req *request) (*h2Conn, *answer, *failure) {
	pool, key := &d.m.h2, h2Key{req.url.Scheme, strings.ToLower(req.url.Host), req.sharing}
	alone := req.perConnection == 1
	if !alone {
		c, err := pool.place(ctx, key)
		if err != nil {
			return nil, nil, phaseFailure(ctx, ReasonError, "wait for a connection", err)
		}
		if c != nil {
			return c, nil, nil
		}
	}
	c, a, fail := d.dial2(ctx, req)
	if !alone {
		pool.dialed(key, c, a != nil)
	}
	return c, a, fail
}

// dial2 makes a connection of HTTP/2, with a place on it reserved.
func (d *dialer) dial2(ctx context.Context, req *request) (*h2Conn, *answer, *failure) {
	var of net.Conn
	stop := func() bool { return true }
	own := *d // the connection is not the stream's: it may outlive that
	own.attach = func(conn net.Conn) bool {
		of = conn
		stop = context.AfterFunc(ctx, func() { hangUp(conn) })
		return ctx.Err() == nil
	}
	a, fail := own.connect(ctx, req)
	if fail != nil {
		stop()
		return nil, nil, fail
	}
	if a.proxy.Forwards() {
		stop()
		hangUp(a.conn)
		return nil, nil, &failure{reason: ReasonProxy, err: fmt.Errorf("%w%s", errForwarded, a.proxy.Through())}
	}
	if a.tls != nil && a.tls.NegotiatedProtocol != alpn2 {
		switch {
		case req.protocol == protocol2:
			stop()
			hangUp(a.conn)
			return nil, nil, &failure{reason: ReasonTLS, err: errNoH2}
		case !stop() || !d.attach(of):
			hangUp(a.conn)
			return nil, nil, &failure{reason: ReasonClient, err: net.ErrClosed}
		}
		return nil, a, nil
	}
	c := newH2Conn(a, &d.m.h2, int(req.perConnection))
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
