// Package proxy determines how a request reaches its service: directly, or through the proxy that HTTP_PROXY,
// HTTPS_PROXY and NO_PROXY select. It interprets these variables like net/http, which k6's own requests use.
package proxy

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/idna"
)

// A Chooser returns the URL of the proxy for requests to destination, or nil for none.
type Chooser func(destination *url.URL) (*url.URL, error)

// fromEnvironment chooses the proxy from the environment, as net/http does. It reads the variables once per process,
// and uses no proxy for localhost and loopback addresses.
func fromEnvironment(destination *url.URL) (*url.URL, error) {
	return http.ProxyFromEnvironment(&http.Request{URL: destination})
}

// A Proxy is the proxy for requests to a destination. nil means a direct connection.
type Proxy struct {
	url         *url.URL
	destination *url.URL // URL of the requests
}

// defaultPorts maps the schemes of proxies that net/http accepts to their default ports.
var defaultPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// DefaultPort returns the default port of a scheme; "" if the scheme is unknown.
func DefaultPort(scheme string) string { return defaultPorts[scheme] }

// For returns the proxy for requests to a URL, or nil for none. A nil Chooser reads the environment. If the proxy's
// URL has no host or an unknown scheme, For returns the proxy and an error.
func (c Chooser) For(destination *url.URL) (*Proxy, error) {
	if c == nil {
		c = fromEnvironment
	}
	proxyURL, err := c(destination)
	if err != nil || proxyURL == nil {
		return nil, err
	}
	p := &Proxy{url: proxyURL, destination: destination}
	if p.url.Hostname() == "" || DefaultPort(p.url.Scheme) == "" {
		return p, p.newError(fmt.Errorf("has no host or an unknown scheme; set %s to http://HOST:PORT, or to https:// or socks5:// with a host", p.Variable()))
	}
	return p, nil
}

// Variable returns the environment variable that names the proxy.
func (p *Proxy) Variable() string { return strings.ToUpper(p.destination.Scheme) + "_PROXY" }

// String returns the URL of the proxy without credentials.
func (p *Proxy) String() string { return p.url.Scheme + "://" + p.url.Host }

// URL returns the URL of the proxy, credentials included; nil for none.
func (p *Proxy) URL() *url.URL {
	if p == nil {
		return nil
	}
	return p.url
}

// Address returns the host:port to dial for requests to destination: the address of the proxy or, without one, the
// address of destination.
func (p *Proxy) Address(destination *url.URL) string {
	if p != nil {
		destination = p.url
	}
	host := destination.Hostname()
	if ascii, err := idna.Lookup.ToASCII(host); err == nil { // ToASCII rejects an IPv6 address
		host = ascii
	}
	return net.JoinHostPort(host, cmp.Or(destination.Port(), DefaultPort(destination.Scheme)))
}

// Forwards reports whether the proxy receives the requests themselves, with absolute URLs (RFC 9112, section 3.2.2).
// HTTP proxies do so for http: URLs. Otherwise the proxy tunnels the connection to the server.
func (p *Proxy) Forwards() bool {
	return p != nil && p.destination.Scheme == "http" && !p.socks()
}

// Secure reports whether the connection to the proxy uses TLS.
func (p *Proxy) Secure() bool { return p != nil && p.url.Scheme == "https" }

func (p *Proxy) socks() bool { return strings.HasPrefix(p.url.Scheme, "socks5") }

// Authorization returns the value of Proxy-Authorization, which is a secret. It is "" if the proxy's URL names no user.
func (p *Proxy) Authorization() string {
	if p.url.User == nil {
		return ""
	}
	password, _ := p.url.User.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(p.url.User.Username()+":"+password))
}

// ErrorSuffix returns " (through the proxy …)", the end of a sentence about a request; "" without a proxy.
func (p *Proxy) ErrorSuffix() string {
	if p == nil {
		return ""
	}
	return " (through the proxy " + p.String() + ")"
}

// An Error is a failure of a connection to or through a proxy. It names the proxy, without credentials.
type Error struct {
	Proxy string
	err   error
}

// Error returns a sentence with the proxy as its subject.
func (e *Error) Error() string { return "the proxy " + e.Proxy + " " + e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// newError returns an Error with the name of the proxy. err is the predicate of the sentence, such as "refused …".
func (p *Proxy) newError(err error) error { return &Error{p.String(), err} }

// DialError returns the error of a failed dial to Address. If there is a proxy, the error names it.
func (p *Proxy) DialError(err error) error {
	if p == nil {
		return err
	}
	return p.newError(fmt.Errorf("cannot be reached: %w", err))
}

// RefusalError returns the error for a request that the proxy refused. The error has the status, such as "407 Proxy
// Authentication Required", and the reason from the header or else from the body.
func (p *Proxy) RefusalError(request, status string, header http.Header, body io.Reader) error {
	status = strings.TrimSpace(status) // the text of the status may be empty
	reason := ErrorHeader(header)
	if reason == "" {
		reason = reasonOf(body, status)
	}
	if reason != "" {
		reason = ": " + reason
	}
	err := errors.New("refused " + request + " with " + status + reason)
	if strings.HasPrefix(status, "407") { // Proxy Authentication Required
		err = fmt.Errorf("%w; set user and password in %s, as http://user:password@host:port", err, p.Variable())
	}
	return p.newError(err)
}

// FromEnvironmentTo returns the proxy that the environment selects for a URL, or nil for none. It returns an error if
// HTTP_PROXY or HTTPS_PROXY is not a URL, because net/http would then use no proxy or a wrong one.
func FromEnvironmentTo(destination string) (*Proxy, error) {
	u, err := url.Parse(destination)
	if err != nil {
		return nil, nil //nolint:nilerr // no request can be sent to an invalid URL; the caller reports that
	}
	if err := checkVariable(httpproxy.FromEnvironment(), u); err != nil {
		return nil, err
	}
	return Chooser(nil).For(u)
}

// checkVariable returns an error if the variable for destination, HTTP_PROXY or HTTPS_PROXY, is not the URL of a proxy.
// It ignores the variable if NO_PROXY excludes destination.
func checkVariable(config *httpproxy.Config, destination *url.URL) error {
	variable, value := "HTTP_PROXY", config.HTTPProxy
	if destination.Scheme == "https" {
		variable, value = "HTTPS_PROXY", config.HTTPSProxy
	}
	probe := httpproxy.Config{HTTPProxy: "http://any", HTTPSProxy: "http://any", NoProxy: config.NoProxy}
	if p, err := probe.ProxyFunc()(destination); value == "" || p == nil || err != nil {
		return nil //nolint:nilerr // ProxyFunc fails only under CGI
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	if u, err := url.Parse(value); err != nil || u.Hostname() == "" {
		return fmt.Errorf("%s must be the URL of a proxy; write http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT "+
			"with a password escaped as in URLs (%%2F for /), or unset it", variable)
	}
	return nil
}

// Transport makes t use the proxies that c chooses, and returns a RoundTripper that uses t. Errors of the RoundTripper
// name the proxy. A refused CONNECT is an error. So is the status 407 for a request that the proxy forwards.
func (c Chooser) Transport(t *http.Transport) http.RoundTripper {
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		p, err := c.For(r.URL)
		return p.URL(), err
	}
	t.OnProxyConnectResponse = func(_ context.Context, proxyURL *url.URL, req *http.Request, resp *http.Response) error {
		if opensTunnel(resp) {
			resp.StatusCode = http.StatusOK // net/http accepts no other status
			return nil
		}
		p := &Proxy{url: proxyURL, destination: &url.URL{Scheme: "https", Host: req.Host}}
		// The error of net/http would have only the status.
		return p.RefusalError("CONNECT "+req.Host, resp.Status, resp.Header, resp.Body)
	}
	return transport{t, c}
}

type transport struct {
	next    *http.Transport
	chooser Chooser
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	p, chooseErr := t.chooser.For(r.URL)
	if p == nil || chooseErr != nil {
		return resp, err
	}
	if err == nil && p.Forwards() && resp.StatusCode == http.StatusProxyAuthRequired {
		defer func() { _ = resp.Body.Close() }()
		return nil, p.RefusalError("the request", resp.Status, resp.Header, resp.Body)
	}
	var op *net.OpError
	var refusal *Error
	switch {
	case err == nil, errors.As(err, &refusal):
		return resp, err // err, if any, already names the proxy
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return nil, p.DialError(op.Err)
	default:
		return nil, fmt.Errorf("%w%s", err, p.ErrorSuffix())
	}
}
