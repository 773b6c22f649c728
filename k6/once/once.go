// Package once keeps the HTTP client of k6 from sending a request a second time unseen.
//
// net/http sends a GET again by itself where a connection that was used before ends before the first
// byte of the answer. A service that resets connections instead of answering would so look as if it
// answered everything. Here such a request fails, with the error that ended its connection. What was
// never sent may still go by another connection, as when an idle one was closed in time.
package once

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"go.k6.io/k6/v2/lib"
)

// Install makes every request of a virtual user be sent once; to call it again changes nothing. It is
// to be called before the first request: of a connection that was opened before nothing is known, and
// a request that is lost on it counts as sent.
//
// Over HTTP/2 a server that says it has not looked at a request (GOAWAY, REFUSED_STREAM) still gets it
// again; again is called then with the request's context, by any goroutine.
func Install(state *lib.State, again func(context.Context)) {
	t, ok := state.Transport.(*http.Transport)
	if !ok { // ours already, or that of a test
		return
	}
	dial := t.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c}, nil
	}
	state.Transport = &transport{next: t, again: again}
}

type transport struct {
	next  http.RoundTripper
	again func(context.Context)
}

// RoundTrip sends a request once.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context()) // ends with its parent: the answer's body is read after this
	if httptrace.ContextClientTrace(ctx) == nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{})
	}
	a := &attempt{cancel: cancel}
	if t.again != nil {
		a.again = func() { t.again(ctx) }
	}
	resp, err := t.next.RoundTrip(req.WithContext(traced{ctx, a.observed(httptrace.ContextClientTrace(ctx))}))
	if a.lost != nil {
		if resp != nil {
			_ = resp.Body.Close()
		}
		return nil, a.lost
	}
	return resp, err
}

// traced is a context with another trace in place of its own. httptrace.WithClientTrace would call
// both, by reflection, which costs a runner percents of its CPU.
type traced struct {
	context.Context
	trace *httptrace.ClientTrace
}

func (t traced) Value(key any) any {
	value := t.Context.Value(key)
	if _, ok := value.(*httptrace.ClientTrace); ok {
		return t.trace
	}
	return value
}

// An attempt follows one request through net/http, by the hooks that it calls before it uses a connection.
type attempt struct {
	cancel context.CancelCauseFunc
	again  func()

	begun  bool  // a connection was found for it
	conn   *conn // that one; nil: not ours
	before int64 // bytes that had been written to it
	h2     bool
	wrote  atomic.Bool // over HTTP/2: by a goroutine of the connection
	lost   error       // it was sent on a connection that ended, and must not be sent again
}

// observed is a trace that also tells the attempt what happens to its request.
func (a *attempt) observed(old *httptrace.ClientTrace) *httptrace.ClientTrace {
	out := *old
	out.GetConn = func(hostPort string) {
		a.seek()
		if old.GetConn != nil {
			old.GetConn(hostPort)
		}
	}
	out.GotConn = func(info httptrace.GotConnInfo) {
		a.found(info.Conn)
		if old.GotConn != nil {
			old.GotConn(info)
		}
	}
	out.WroteHeaders = func() {
		a.wrote.Store(true)
		if old.WroteHeaders != nil {
			old.WroteHeaders()
		}
	}
	return &out
}

// seek is called before net/http looks for a connection: again, where it has lost one and is about to
// send the request once more.
func (a *attempt) seek() {
	if !a.begun || a.h2 || a.lost != nil {
		return
	}
	if a.conn == nil {
		a.lost = io.EOF
	} else if a.conn.sent.Load() > a.before {
		a.lost = a.conn.failure()
	}
	if a.lost != nil {
		a.cancel(a.lost)
	}
}

// found is called with the connection that the request will go by.
func (a *attempt) found(c net.Conn) {
	if a.lost != nil { // an idle one was quicker than the cancellation
		_ = c.Close()
		return
	}
	if a.h2 && a.wrote.Swap(false) && a.again != nil {
		a.again()
	}
	if secure, ok := c.(*tls.Conn); ok {
		a.h2 = secure.ConnectionState().NegotiatedProtocol == "h2"
		c = secure.NetConn()
	}
	a.begun = true
	if a.conn, _ = c.(*conn); a.conn != nil {
		a.before = a.conn.sent.Load()
	}
}

// A conn counts what is written to it, and keeps the error that ended it.
type conn struct {
	net.Conn
	sent  atomic.Int64
	ended atomic.Pointer[error]
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.note(err)
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	c.note(err)
	return n, err
}

// note keeps the first error; what follows when both sides hang up says nothing of the cause.
func (c *conn) note(err error) {
	if err != nil && !errors.Is(err, net.ErrClosed) {
		c.ended.CompareAndSwap(nil, &err)
	}
}

// failure is why the connection ended, without a word of its peer: EOF.
func (c *conn) failure() error {
	if err := c.ended.Load(); err != nil {
		return *err
	}
	return io.EOF
}
