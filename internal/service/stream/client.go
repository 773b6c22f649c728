// Package stream sends the requests of probe and trial with the SSE client of the runners, each on its own connection.
package stream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

// A Client makes requests. It applies K6_INSECURE_SKIP_TLS_VERIFY.
type Client struct {
	Timeout         time.Duration                                                        // time limit for the head of the response; 0 means no limit
	Dial            func(ctx context.Context, network, address string) (net.Conn, error) // nil means package net
	Proxies         proxy.Chooser                                                        // nil means the proxies of the environment
	HTTPVersion     string                                                               // 1.1 or 2; otherwise the server chooses
	FollowRedirects bool                                                                 // follow redirects to other origins
}

// ErrNoResponse is the cause of an error if the head of the response does not arrive within the Timeout.
var ErrNoResponse = errors.New("no response")

// maxRedirects is the limit of redirects, equal to k6's default.
const maxRedirects = 10

// send sends a request, and returns when the head of the response is complete. Its errors name the request, without
// tokens.
func (c *Client) send(ctx context.Context, r Request) (*sseclient.Response, error) {
	o := sseclient.Options{
		ConnectTimeout: c.Timeout, FollowRedirects: c.FollowRedirects, MaxRedirects: maxRedirects,
		AcceptEncoding: r.AcceptEncoding, LastEventID: r.LastEventID,
	}
	if r.NoRedirect {
		o.MaxRedirects = 0
	}
	o.Sharing.Protocol, _ = sseclient.ParseProtocol(cmp.Or(c.HTTPVersion, "auto"))
	insecure, _ := strconv.ParseBool(os.Getenv("K6_INSECURE_SKIP_TLS_VERIFY"))
	client := &sseclient.Client{
		Dial: c.Dial, Proxies: c.Proxies, UserAgent: "sse-soak", NoSharing: true,
		TLS: func(string) *tls.Config {
			return &tls.Config{InsecureSkipVerify: insecure} // #nosec G402 -- the user's choice, as in k6
		},
	}
	if r.NoKeepAlive && c.Dial == nil {
		client.Dial = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	started := time.Now()
	response, end := client.Do(ctx, &o, r.Request)
	var err error
	switch {
	case end != nil && ctx.Err() == nil && c.Timeout > 0 && time.Since(started) >= c.Timeout:
		err = fmt.Errorf("%w within %.3g s", ErrNoResponse, c.Timeout.Seconds())
	case end != nil:
		err = cmp.Or(ctx.Err(), withRemedy(end.Err))
		if strings.HasPrefix(r.URL, "http:") && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) { // servers that expect TLS do this
			err = fmt.Errorf("%w; if the service uses TLS, use https://", err)
		}
	case response.Location() != "" && !r.NoRedirect:
		_ = response.Body(0).Close()
		err = fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if err != nil {
		return nil, secret.HideInError(fmt.Errorf("%s: %w", r, err), r.secret) // the service may repeat the token in a malformed header
	}
	return response, nil
}

// withRemedy adds a remedy to a connection error, if one is known. It replaces the error of a refused connection,
// unless a proxy refused it.
func withRemedy(err error) error {
	var proxied *proxy.Error
	if errors.Is(err, syscall.ECONNREFUSED) && !errors.As(err, &proxied) {
		return errors.New("nothing is listening there (connection refused)")
	}
	return proxy.WithRemedy(err)
}

// An Answer is a response that is not a stream.
type Answer struct {
	Status int
	Header http.Header
	Body   string // beginning of the body, on one line
}

// Do sends a request whose response is not a stream. The response may have any status.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	r.Plain = true
	s, err := c.Open(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	defer s.Close()
	return Answer{s.Status, s.Header, s.Excerpt()}, nil
}

// Open makes the request and returns when the head of the response is complete. The stream ends with ctx.
func (c *Client) Open(ctx context.Context, r Request) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	requested := time.Now()
	response, err := c.send(ctx, r)
	if err != nil {
		cancel()
		return nil, err
	}
	return &Stream{RequestedAt: requested, Response: response, request: r, body: response.Body(0), ctx: ctx, cancel: cancel}, nil
}

// A Request is one request of a description. Its headers override the client's headers, and are not sent to other
// origins.
type Request struct {
	sseclient.Request
	AcceptEncoding, LastEventID string // also sent to other origins

	// NoRedirect makes a redirect the final response, as for the publisher of a run.
	NoRedirect bool
	// NoKeepAlive turns off TCP keep-alive, which would show routers that a silent connection is in use. It has no
	// effect if Client.Dial is set.
	NoKeepAlive bool

	MaxEventSize int // maximum event size of the stream in bytes; 0 means 1 MiB

	secret string // token in the request; errors and excerpts of the response hide it
}

// Fill returns a request of a description with values in its placeholders.
func Fill(r *service.Request, v *service.Values) Request {
	out := Request{secret: v.Token, Request: sseclient.Request{
		Method: r.Method, URL: string(r.URL.Append(nil, v)), Body: string(r.Body.Append(nil, v)), Header: http.Header{},
	}}
	for name, value := range r.FilledHeaders(v) {
		out.Header.Set(name, value)
	}
	return out
}

// Accepts reports whether the request accepts a content coding.
func (r Request) Accepts(name string) bool {
	if described, ok := r.Header["Accept-Encoding"]; ok {
		return coding.Accepts(described[0], name)
	}
	return coding.Accepts(r.AcceptEncoding, name)
}

// String returns the method and the URL, without the token and the query.
func (r Request) String() string {
	target, _, hasQuery := strings.Cut(r.URL, "?")
	if hasQuery {
		target += "?…"
	}
	return cmp.Or(r.Method, http.MethodGet) + " " + secret.Hide(target, r.secret)
}

// Secret returns the token in the request.
func (r Request) Secret() string { return r.secret }
