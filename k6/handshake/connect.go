package handshake

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

// A Connection is the return value of connect in a script: a TCP connection with a full TLS handshake and the latest
// response. Times are in milliseconds. The times and the status of phases that never completed are 0.
type Connection struct {
	OK       bool    `js:"ok"`
	Cause    string  `js:"cause"`   // a Cause, as a string for scripts; "" if OK
	Message  string  `js:"message"` // the error; "" if OK
	TCPMs    float64 `js:"tcpMs"`
	TLSMs    float64 `js:"tlsMs"`
	AnswerMs float64 `js:"answerMs"` // of the latest response
	Status   int     `js:"status"`   // of the latest response
	Version  string  `js:"version"`  // such as "TLS 1.3"
	Cipher   string  `js:"cipher"`
	Group    string  `js:"group"` // of the key exchange

	m               *module
	ctx             context.Context // of the iteration
	request         *request
	conn            net.Conn
	wire            *sseclient.Conn // below conn
	handshake       traffic         // of the TLS handshake
	reportedTraffic traffic         // the traffic that samples already include
	openCount       int64           // number of open connections of the process after this connection opened
	closeOnce       sync.Once
}

// connect implements connect in scripts. It blocks the VU until the server has responded or the connection has failed.
func (m *module) connect(rawURL string, params sobek.Value) *Connection {
	state := network.State(m.vu, importPath)
	r, err := m.parse(rawURL, params)
	if err != nil {
		common.Throw(m.vu.Runtime(), err)
	}
	ctx := m.vu.Context()
	c := &Connection{m: m, ctx: ctx, request: r}
	if state.RPSLimit != nil && state.RPSLimit.Wait(ctx) != nil {
		c.fail(causeInterrupted, ctx.Err())
		return c
	}
	timeoutCtx, cancel := context.WithTimeout(ctx, r.timeout)
	c.establish(timeoutCtx, state)
	cancel()
	if c.OK && r.hold {
		context.AfterFunc(ctx, c.Close) // no connection outlives its iteration
	} else {
		c.Close()
	}
	m.reportConnection(c)
	return c
}

// establish opens the TCP connection, completes the TLS handshake and makes the first request. It stops at the first
// failure.
func (c *Connection) establish(ctx context.Context, state *lib.State) {
	start := time.Now()
	raw, err := state.Dialer.DialContext(ctx, "tcp", c.request.address)
	if err != nil {
		c.fail(dialCause(ctx, err), err)
		return
	}
	c.wire = &sseclient.Conn{Conn: raw, Received: new(int64), Sent: new(int64)}
	c.conn, c.openCount = c.wire, c.m.root.openCount.Add(1)
	connectedAt := time.Now()
	c.TCPMs = metrics.D(connectedAt.Sub(start))
	secure := tls.Client(c.wire, c.tlsConfig(state))
	if err := secure.HandshakeContext(ctx); err != nil {
		c.fail(tlsCause(ctx, err, causeTLSTimeout, causeTLSReset, causeTLS), err)
		return
	}
	c.conn = secure
	c.TLSMs, c.handshake = metrics.D(time.Since(connectedAt)), trafficOf(c.wire)
	s := secure.ConnectionState()
	c.Version, c.Cipher, c.Group = tls.VersionName(s.Version), tls.CipherSuiteName(s.CipherSuite), s.CurveID.String()
	if s.DidResume {
		c.fail(causeResumed, errors.New("the server resumed a session, so the handshake was not a full one"))
		return
	}
	c.OK = c.exchange(ctx)
}

// tlsConfig returns k6's TLS configuration (tlsAuth, tlsVersion, insecureSkipTLSVerify …) without session resumption.
// The certificate parameter of the connection replaces k6's certificates.
func (c *Connection) tlsConfig(state *lib.State) *tls.Config {
	name, _, _ := net.SplitHostPort(c.request.address)
	conf := network.TLSConfig(state, name)
	conf.ClientSessionCache, conf.SessionTicketsDisabled = nil, true
	switch {
	case c.request.noCertificate:
		conf.Certificates, conf.GetClientCertificate = nil, nil
	case c.request.certificate != nil: // presented even if the server asks for certificates of other authorities
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.request.certificate, nil
		}
	}
	return conf
}

// exchange makes a request and reports whether the response has status 200. Only a response proves that the server
// accepted the client's certificate.
func (c *Connection) exchange(ctx context.Context) bool {
	start := time.Now()
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(start) }) // ends a blocked read or write

	req := &http.Request{ // an empty User-Agent is not sent
		URL: c.request.url, Host: c.request.url.Host, Close: !c.request.hold, Header: http.Header{"User-Agent": {""}},
	}
	err := http1.WriteRequest(c.conn, req, nil)
	var status int
	if err == nil {
		status, err = readResponse(c.conn, req)
	}
	if !stop() && err == nil {
		err = ctx.Err() // no further request is possible
	}
	if err != nil {
		c.fail(tlsCause(ctx, err, causeAnswerTimeout, causeAnswerReset, causeAnswer), err)
		return false
	}
	c.AnswerMs, c.Status = metrics.D(time.Since(start)), status
	if status != http.StatusOK {
		c.fail(causeStatus, fmt.Errorf("the response has status %d instead of 200", status))
		return false
	}
	return true
}

func readResponse(conn net.Conn, req *http.Request) (status int, err error) {
	resp, err := http1.NewReader(conn).Head(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// fail records the cause and the error of a failure. It does not close the connection.
func (c *Connection) fail(cause Cause, err error) {
	c.OK, c.Cause = false, string(cause)
	if err != nil {
		c.Message = err.Error()
	}
}

// Ask makes another request on a connection that connect has kept open (hold). It reports whether the response has
// status 200. If not, it closes the connection. On a failed connection it makes no request and returns false.
func (c *Connection) Ask() bool {
	if !c.OK {
		return false
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.request.timeout)
	defer cancel()
	if c.OK = c.exchange(ctx); !c.OK {
		c.Close()
	}
	c.m.reportResponse(c)
	return c.OK
}

// Close closes the connection. Further calls have no effect. Any goroutine may call it.
func (c *Connection) Close() {
	c.closeOnce.Do(func() {
		if c.conn != nil {
			_ = c.conn.Close() // no data is pending
			c.m.root.openCount.Add(-1)
		}
	})
}
