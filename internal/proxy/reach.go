package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

const maxHead = 64 << 10 // maximum bytes of the response to CONNECT

// RefusalTimeout is the timeout for reading the body of an error response.
const RefusalTimeout = 250 * time.Millisecond

// Reach performs the handshakes with the proxy on conn, a connection to Address. It returns a connection for requests:
// to the server, or to a proxy that forwards the requests. Without a proxy, Reach returns conn itself. secure returns a
// TLS client for conn and the name of a server. TLS and SOCKS handshakes end when ctx ends. Every handshake ends
// at the deadline of conn. If Reach fails, the caller must close conn.
func (p *Proxy) Reach(ctx context.Context, conn net.Conn, secure func(conn net.Conn, name string) *tls.Conn) (net.Conn, error) {
	switch {
	case p == nil:
		return conn, nil
	case p.socks():
		return conn, p.connectSOCKS(ctx, conn)
	case p.Secure():
		outer := secure(conn, p.url.Hostname())
		if err := outer.HandshakeContext(ctx); err != nil {
			return nil, p.newError(fmt.Errorf("failed the TLS handshake: %w", err))
		}
		conn = outer
	}
	if p.Forwards() {
		return conn, nil
	}
	return p.tunnel(conn)
}

// connectSOCKS uses SOCKS 5 to make the proxy connect to the server. The proxy resolves the name of the server.
func (p *Proxy) connectSOCKS(ctx context.Context, conn net.Conn) error {
	var auth *proxy.Auth
	if user := p.url.User; user != nil {
		password, _ := user.Password()
		auth = &proxy.Auth{User: user.Username(), Password: password}
	}
	d, err := proxy.SOCKS5("tcp", p.url.Host, auth, nil)
	if err != nil {
		return p.newError(fmt.Errorf("cannot be used: %w", err))
	}
	dialer, ok := d.(interface {
		DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
	})
	if !ok {
		return p.newError(errors.New("cannot be used: golang.org/x/net does not support SOCKS on an existing connection"))
	}
	if _, err := dialer.DialWithConn(ctx, conn, "tcp", p.server()); err != nil {
		return p.newError(fmt.Errorf("did not connect to %s: %w", p.server(), err))
	}
	if deadline, ok := ctx.Deadline(); ok { // DialWithConn has removed the deadline of conn
		_ = conn.SetDeadline(deadline)
	}
	return nil
}

func (p *Proxy) server() string { return (*Proxy)(nil).Address(p.destination) }

// tunnel sends a CONNECT request (RFC 9110, section 9.3.6) to make the proxy connect to the server.
func (p *Proxy) tunnel(conn net.Conn) (net.Conn, error) {
	request := "CONNECT " + p.server()
	r := &http.Request{
		Method: http.MethodConnect, URL: &url.URL{Opaque: p.server()}, Host: p.server(), Header: http.Header{},
	}
	if a := p.Authorization(); a != "" {
		r.Header.Set("Proxy-Authorization", a)
	}
	var out bytes.Buffer // so that one Write sends the whole request
	_ = r.Write(&out)    // writing to a buffer does not fail
	if _, err := conn.Write(out.Bytes()); err != nil {
		return nil, p.newError(fmt.Errorf("did not accept %s: %w", request, err))
	}
	head := &io.LimitedReader{R: conn, N: maxHead}
	in := bufio.NewReaderSize(head, 1<<10)
	resp, err := http.ReadResponse(in, r) //nolint:bodyclose // the tunnel follows a success
	if err != nil {
		outcome := "sent an invalid response to"
		var network net.Error
		switch {
		case head.N == 0:
			return nil, p.newError(fmt.Errorf("answered %s with a header of over %d bytes", request, maxHead))
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			outcome = "closed the connection instead of answering"
		case errors.As(err, &network):
			outcome = "did not answer"
		}
		return nil, p.newError(fmt.Errorf("%s %s: %w", outcome, request, err))
	}
	if !opensTunnel(resp) {
		_ = conn.SetReadDeadline(time.Now().Add(RefusalTimeout)) // if this fails, so does reading the body
		return nil, p.RefusalError(request, resp.Status, resp.Header, resp.Body)
	}
	if remainder, _ := in.Peek(in.Buffered()); len(remainder) > 0 {
		return &bufferedConn{conn, bytes.Clone(remainder)}, nil
	}
	return conn, nil
}

// opensTunnel reports whether the response to a CONNECT request is a success: any 2xx (RFC 9110, section 9.3.6).
func opensTunnel(resp *http.Response) bool { return resp.StatusCode/100 == 2 }

// A bufferedConn is a connection with bytes that were read together with the proxy's response.
type bufferedConn struct {
	net.Conn
	buffered []byte
}

func (c *bufferedConn) Read(p []byte) (int, error) {
	if len(c.buffered) > 0 {
		n := copy(p, c.buffered)
		c.buffered = c.buffered[n:]
		return n, nil
	}
	return c.Conn.Read(p) // not wrapped, because crypto/tls inspects the error
}
