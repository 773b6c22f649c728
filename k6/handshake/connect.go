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

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/k6/network"
)

// A Connection is one TCP connection with one full TLS handshake and its first answer, as a
// script sees it. Times are milliseconds; they and the status are 0 where it did not come that far.
type Connection struct {
	OK       bool    `js:"ok"`
	Cause    string  `js:"cause"`   // a Cause, "" where OK; a script compares texts
	Message  string  `js:"message"` // of the cause
	TCPMs    float64 `js:"tcpMs"`
	TLSMs    float64 `js:"tlsMs"`
	AnswerMs float64 `js:"answerMs"` // of the latest answer
	Status   int     `js:"status"`   // of the latest answer
	Version  string  `js:"version"`  // such as "TLS 1.3"
	Cipher   string  `js:"cipher"`
	Group    string  `js:"group"` // of the key exchange

	m        *module
	ctx      context.Context // of the iteration
	request  *request
	conn     net.Conn
	wire     *wire   // below conn
	shook    traffic // of the TLS handshake
	reported traffic // what metrics have
	open     int64   // connections open in the process when this one had opened
	closing  sync.Once
}

// connect is the exported function: it blocks the VU until the server has answered.
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
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	c.establish(limited, state)
	cancel()
	if c.OK && r.hold {
		context.AfterFunc(ctx, c.Close) // an iteration leaves nothing open
	} else {
		c.Close()
	}
	m.reportConnection(c)
	return c
}

// establish runs the phases until one fails.
func (c *Connection) establish(ctx context.Context, state *lib.State) {
	began := time.Now()
	raw, err := state.Dialer.DialContext(ctx, "tcp", c.request.address)
	if err != nil {
		c.fail(dialCause(ctx, err), err)
		return
	}
	c.wire = &wire{Conn: raw}
	c.conn, c.open = c.wire, c.m.root.open.Add(1)
	connected := time.Now()
	c.TCPMs = milliseconds(connected.Sub(began))
	secure := tls.Client(c.wire, c.tlsConfig(state))
	if err := secure.HandshakeContext(ctx); err != nil {
		c.fail(tlsCause(ctx, err, causeTLSTimeout, causeTLSReset, causeTLS), err)
		return
	}
	c.conn = secure
	c.TLSMs, c.shook = milliseconds(time.Since(connected)), c.wire.bytes()
	s := secure.ConnectionState()
	c.Version, c.Cipher, c.Group = tls.VersionName(s.Version), tls.CipherSuiteName(s.CipherSuite), s.CurveID.String()
	if s.DidResume {
		c.fail(causeResumed, errors.New("the session was resumed: that was no full handshake"))
		return
	}
	c.OK = c.exchange(ctx)
}

// tlsConfig returns k6's own configuration (tlsAuth, tlsVersion, insecureSkipTLSVerify …), without resumption, and with
// the certificate of this connection if it names one.
func (c *Connection) tlsConfig(state *lib.State) *tls.Config {
	conf := network.TLSConfig(state, c.request.url.Hostname())
	conf.ClientSessionCache, conf.SessionTicketsDisabled = nil, true
	switch {
	case c.request.bare:
		conf.Certificates, conf.GetClientCertificate = nil, nil
	case c.request.certificate != nil: // even one that the server does not ask for by its authority
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.request.certificate, nil
		}
	}
	return conf
}

// exchange requests the path of the URL and requires a 200: only a response proves that the server accepted the
// client's certificate.
func (c *Connection) exchange(ctx context.Context) bool {
	began := time.Now()
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(began) }) // ends a blocked read
	defer stop()
	req := &http.Request{
		URL: c.request.url, Host: c.request.url.Host, Close: !c.request.hold, Header: http.Header{"User-Agent": {""}}, // none is sent
	}
	err := http1.WriteRequest(c.conn, req, nil)
	var status int
	if err == nil {
		status, err = readAnswer(c.conn, req)
	}
	if err != nil {
		c.fail(tlsCause(ctx, err, causeTimeout, causeReset, causeAnswer), err)
		return false
	}
	c.AnswerMs, c.Status = milliseconds(time.Since(began)), status
	if status != http.StatusOK {
		c.fail(causeStatus, fmt.Errorf("the server answered %d %s", status, http.StatusText(status)))
		return false
	}
	return true
}

// readAnswer reads one whole response.
func readAnswer(conn net.Conn, req *http.Request) (status int, err error) {
	reader := http1.Borrow(conn)
	defer reader.Return()
	resp, err := reader.Head(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

func (c *Connection) fail(cause Cause, err error) {
	c.OK, c.Cause = false, string(cause)
	if err != nil {
		c.Message = err.Error()
	}
}

// Ask asks again on a connection that was kept open. After the first answer that is not 200 the connection is
// closed.
func (c *Connection) Ask() bool {
	if !c.OK {
		return false
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.request.timeout)
	defer cancel()
	if c.OK = c.exchange(ctx); !c.OK {
		c.Close()
	}
	c.m.reportAnswer(c)
	return c.OK
}

// Close closes the connection; a closed one stays as it is. Any goroutine may call it.
func (c *Connection) Close() {
	c.closing.Do(func() {
		if c.conn != nil {
			_ = c.conn.Close() // nothing is left to be written
			c.m.root.open.Add(-1)
		}
	})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
