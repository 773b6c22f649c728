// Package stream sends the requests of probe and trial, each on its own connection. It uses the SSE client of the
// runners.
package stream

import (
	"bytes"
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

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A Client makes requests. It applies K6_INSECURE_SKIP_TLS_VERIFY.
type Client struct {
	Timeout         time.Duration // time limit for the head of the response; 0 means no limit
	Proxies         proxy.Chooser // nil means the proxies of the environment
	HTTPVersion     string        // 1.1 or 2; otherwise the server chooses
	FollowRedirects bool          // follow redirects to other origins
	// Dial opens a connection. nil means the dialer of package net.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
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
		// Servers that expect TLS close or reset the connection.
		if strings.HasPrefix(r.URL, "http:") && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
			err = fmt.Errorf("%w; if the service uses TLS, use https://", err)
		}
	case response.Location() != "" && !r.NoRedirect:
		_ = response.Body(0).Close()
		err = fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if err != nil {
		// The service may repeat the token in a malformed header.
		return nil, secret.HideInError(fmt.Errorf("%s: %w", r, err), r.secret)
	}
	return response, nil
}

// withRemedy adds a remedy to a connection error, if one is known. It replaces the error of a refused connection,
// unless a proxy refused it.
func withRemedy(err error) error {
	var proxyErr *proxy.Error
	if errors.Is(err, syscall.ECONNREFUSED) && !errors.As(err, &proxyErr) {
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
	url, _, hasQuery := strings.Cut(r.URL, "?")
	if hasQuery {
		url += "?…"
	}
	return cmp.Or(r.Method, http.MethodGet) + " " + secret.Hide(url, r.secret)
}

// Secret returns the token in the request.
func (r Request) Secret() string { return r.secret }

// A Stream is the response to a request for an event stream, with any status. One goroutine reads it; other goroutines
// may call Received and Close.
type Stream struct {
	*sseclient.Response
	RequestedAt time.Time

	request Request
	body    *sseclient.Body
	ctx     context.Context //nolint:containedctx // ends with the stream
	cancel  context.CancelFunc
	parser  *eventstream.Parser // nil before the first Next
}

// Excerpt returns the beginning of the body of a response that is not a stream, as one line. It closes the stream if
// reading takes longer than 2 s.
func (s *Stream) Excerpt() string {
	const maxLength = 300
	stop := time.AfterFunc(2*time.Second, s.Close) // the body may be endless
	defer stop.Stop()
	text, _ := io.ReadAll(io.LimitReader(s.body, 4*maxLength))
	return format.Shorten(secret.Hide(string(text), s.request.secret), maxLength)
}

// Received returns the number of bytes of the body that arrived, before decompression, and when the last one arrived.
func (s *Stream) Received() (n int64, at time.Time) { return s.body.Received() }

// A Part is a block, or one comment line of a block that has not ended. The block repeats its comments. The caller owns
// the slices of a Part.
type Part struct {
	service.Block
	At   time.Time // time of arrival
	Line bool      // a comment line
}

// Next waits for the next part. At the end of the stream it returns io.EOF if the stream ended outside an event, and
// io.ErrUnexpectedEOF if it was truncated. It returns context.Canceled after Close, and after the end of the context of
// Open.
func (s *Stream) Next() (Part, error) {
	if s.parser == nil {
		s.parser = new(eventstream.Parser)
		s.parser.Reset(s.body, s.request.MaxEventSize)
	}
	var b eventstream.Block
	kind, err := s.parser.NextPart(&b)
	if err != nil {
		if s.ctx.Err() != nil {
			err = context.Canceled
		}
		return Part{}, err
	}
	part := Part{At: time.Now(), Line: kind == eventstream.CommentLine}
	part.Comment, part.HasComment = bytes.Clone(b.Comment), b.HasComment
	if !part.Line {
		part.Event, part.Data, part.HasData = bytes.Clone(b.Name), bytes.Clone(b.Data), b.HasData
		if part.HasID = b.HasID; b.HasID {
			part.ID = bytes.Clone(b.ID)
		}
	}
	return part, nil
}

// LastEventID returns the last event ID that this stream has set, or "" if it has set none.
func (s *Stream) LastEventID() string {
	if s.parser == nil {
		return ""
	}
	return string(s.parser.LastEventID())
}

// Context returns a context that ends with Close, or with the context of Open.
func (s *Stream) Context() context.Context { return s.ctx }

// Close ends the stream. A blocked Next returns context.Canceled.
func (s *Stream) Close() { s.cancel() }

// InParentheses returns a body in parentheses after a space, or "" if the body is empty.
func InParentheses(body string) string {
	if body == "" {
		return ""
	}
	return " (" + body + ")"
}

// EndInWords describes the end of a stream for an error of Next.
func EndInWords(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "the client closed it"
	case errors.Is(err, io.EOF):
		return "the service closed it"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the response was truncated"
	case errors.Is(err, eventstream.ErrTooLong):
		return err.Error() + "; set connect.maxEventSize to a larger value"
	}
	return withRemedy(err).Error()
}
