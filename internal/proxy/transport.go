package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// Transport makes a transport of net/http use the Chooser. Its errors and refusals name the proxy.
func (c Chooser) Transport(t *http.Transport) http.RoundTripper {
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		p, err := c.For(r.URL)
		return p.URL(), err
	}
	t.OnProxyConnectResponse = func(_ context.Context, proxyURL *url.URL, req *http.Request, answer *http.Response) error {
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		p := &Proxy{url: proxyURL, target: &url.URL{Scheme: "https", Host: req.Host}}
		return p.RefusalError("CONNECT "+req.Host, answer.Status, answer.Header, answer.Body) // net/http would return only the status
	}
	return transport{t, c}
}

type transport struct {
	next *http.Transport
	c    Chooser
}

var _ http.RoundTripper = transport{}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	p, chooseErr := t.c.For(r.URL)
	if p == nil || chooseErr != nil {
		return answer, err //nolint:wrapcheck // the error of net/http
	}
	if err == nil && p.Forwards() && answer.StatusCode == http.StatusProxyAuthRequired {
		defer func() { _ = answer.Body.Close() }()
		return nil, p.RefusalError("the request", answer.Status, answer.Header, answer.Body)
	}
	var op *net.OpError
	var refusal *Error
	switch {
	case err == nil, errors.As(err, &refusal):
		return answer, err //nolint:wrapcheck // names the proxy
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return nil, p.DialError(op.Err)
	default:
		return nil, fmt.Errorf("%w%s", err, p.Through())
	}
}
