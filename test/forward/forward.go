// Package forward is a forward proxy for tests. It supports CONNECT and requests with absolute URLs, and records the
// requests.
package forward

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/test/address"
)

// Options configure a proxy.
type Options struct {
	User    *url.Userinfo                // only accepted user; nil: all users are accepted
	TLS     *tls.Config                  // clients must use TLS; nil: plain connections
	Resolve func(address string) string  // returns the address to dial for host:port; nil: host:port itself
	Refuse  func(r *http.Request) string // returns the text of a 403 response, or "" to forward; nil: no refusals
}

// A Proxy is a running forward proxy.
type Proxy struct {
	URL string // contains Options.User, if not nil

	options Options
	server  *http.Server
	handler *httputil.ReverseProxy

	mu       sync.Mutex // guards the fields below
	requests []string
	conns    map[net.Conn]struct{} // both connections of each open tunnel
}

// Start starts a proxy on this machine.
func Start(o Options) (*Proxy, error) {
	host, err := address.Free() // reserved, so that no other server responds there after Stop
	if err != nil {
		return nil, fmt.Errorf("start the proxy: %w", err)
	}
	l, err := net.Listen("tcp", host)
	if err != nil {
		return nil, fmt.Errorf("start the proxy: %w", err)
	}
	proxyURL := url.URL{Scheme: "http", Host: host, User: o.User}
	if o.TLS != nil {
		proxyURL.Scheme, l = "https", tls.NewListener(l, o.TLS)
	}
	p := &Proxy{URL: proxyURL.String(), options: o, conns: map[net.Conn]struct{}{}}
	logger := log.New(io.Discard, "", 0)
	p.handler = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host }, FlushInterval: -1, ErrorLog: logger,
		Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true, DialContext: p.dial},
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ErrorLog: logger, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// Stop closes all connections through the proxy, and refuses new ones.
func (p *Proxy) Stop() {
	_ = p.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// Requests returns the accepted requests, in the form "GET http://host/path" or "CONNECT host:port".
func (p *Proxy) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// Tunnels returns the number of open tunnels.
func (p *Proxy) Tunnels() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) / 2
}

func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.options.Resolve != nil {
		address = p.options.Resolve(address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	request := r.Method + " " + r.URL.Scheme + "://" + r.URL.Host + r.URL.Path
	if r.Method == http.MethodConnect {
		request = "CONNECT " + r.Host
	}
	switch {
	case !p.admits(r.Header.Get("Proxy-Authorization")):
		w.Header().Set("Proxy-Authenticate", `Basic realm="test"`)
		http.Error(w, "who are you?", http.StatusProxyAuthRequired)
		return
	case r.URL.Host == "":
		http.Error(w, "the URL of a request to a proxy must be absolute", http.StatusBadRequest)
		return
	}
	if p.options.Refuse != nil {
		if reason := p.options.Refuse(r); reason != "" {
			http.Error(w, reason, http.StatusForbidden)
			return
		}
	}
	p.mu.Lock()
	p.requests = append(p.requests, request)
	p.mu.Unlock()
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	p.handler.ServeHTTP(w, r)
}

func (p *Proxy) admits(credentials string) bool {
	if p.options.User == nil {
		return true
	}
	password, _ := p.options.User.Password()
	expected := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.options.User.Username()+":"+password))
	return credentials == expected
}

func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	server, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, "cannot connect to "+r.Host, http.StatusBadGateway)
		return
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = server.Close()
		return
	}
	p.mu.Lock()
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	var directions sync.WaitGroup
	directions.Go(func() { forward(server, client) })
	directions.Go(func() { forward(client, server) })
	directions.Wait()
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, server)
	p.mu.Unlock()
}

// forward copies data until one side closes, and then closes both.
func forward(to, from net.Conn) {
	defer func() { _ = to.Close(); _ = from.Close() }()
	_, _ = io.Copy(to, from)
}
