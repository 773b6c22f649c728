package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// Transport makes t use the proxies that c chooses, and returns a RoundTripper that uses t. Errors of the RoundTripper
// name the proxy. A refusal by the proxy is an error, not a response.
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
		p := &Proxy{url: proxyURL, target: &url.URL{Scheme: "https", Host: req.Host}}
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
