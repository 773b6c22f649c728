package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// Request is one HTTP request, filled in. Header wins over what the client sends by itself.
type Request struct {
	Method, URL, Body string
	Header            http.Header

	// NoRedirect takes a redirect for the answer, as the publisher of a run does.
	NoRedirect bool
	// NoKeepAlive sends no TCP keep-alive, which tells routers on the way that a silent connection is in use.
	NoKeepAlive bool

	MaxEventSize int // of the stream, in bytes; 0: 1 MiB

	secret    string   // that is in it: what is quoted of the answer does not show it
	described []string // names of the headers of its description, which no other origin gets
}

// Fill fills a request of a description in.
func Fill(r *service.Request, v *service.Values) Request {
	out := Request{Method: r.Method, URL: string(r.URL.Append(nil, v)), Body: string(r.Body.Append(nil, v)), Header: http.Header{}, secret: v.Token}
	for name, value := range r.FilledHeaders(v) {
		out.Header.Set(name, value)
		out.described = append(out.described, name)
	}
	return out
}

// Accept has it ask for compression, unless it says by itself for which; "" asks for none.
func (r *Request) Accept(encoding string) {
	if _, hasOwn := r.Header["Accept-Encoding"]; encoding != "" && !hasOwn {
		r.Header.Set("Accept-Encoding", encoding)
	}
}

// String is the request as a sentence names it: its method and its URL, without the query, which may hold a token.
func (r Request) String() string {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	target, _, more := strings.Cut(r.URL, "?")
	if more {
		target += "?…"
	}
	return method + " " + target
}

// Secret is the token that is in it.
func (r Request) Secret() string { return r.secret }

// Answer is the answer to a request that is no stream.
type Answer struct {
	Status int
	Header http.Header
	Body   string // its beginning, shortened as a sentence can hold it
}

// dialTimeout bounds the connecting; what follows is bounded by the caller's context.
const dialTimeout = 10 * time.Second

// A Dial connects to an address.
type Dial func(ctx context.Context, address string) (net.Conn, error)

type dialKey struct{}

// Dialing makes requests of ctx connect by dial, so that a test can have a network without delays of its own.
func Dialing(ctx context.Context, dial Dial) context.Context {
	return context.WithValue(ctx, dialKey{}, dial)
}

type proxiesKey struct{}

// Proxied makes requests of ctx go through the proxies of a test, in place of the environment's.
func Proxied(ctx context.Context, proxies proxy.Chooser) context.Context {
	return context.WithValue(ctx, proxiesKey{}, proxies)
}

type versionKey struct{}

// Speaking makes requests of ctx speak a version of HTTP, as HTTP_VERSION says it for the others: 1.1, 2, or what the server wants.
func Speaking(ctx context.Context, version string) context.Context {
	return context.WithValue(ctx, versionKey{}, version)
}

type redirectsKey struct{}

// FollowingRedirects makes requests of ctx follow redirects to other origins.
func FollowingRedirects(ctx context.Context) context.Context {
	return context.WithValue(ctx, redirectsKey{}, true)
}

// protocols are what requests of ctx may speak; nil is what the server wants over TLS, and HTTP/1.1 over http://.
func protocols(ctx context.Context) *http.Protocols {
	version, hasVersion := ctx.Value(versionKey{}).(string)
	if !hasVersion {
		version = os.Getenv("HTTP_VERSION")
	}
	p := new(http.Protocols)
	switch version {
	case "1.1":
		p.SetHTTP1(true)
	case "2":
		p.SetHTTP2(true)
		p.SetUnencryptedHTTP2(true)
	default:
		return nil
	}
	return p
}

// newTransport makes one connection, used once, by the same proxies as k6/sse.
func newTransport(ctx context.Context, last, silent bool) http.RoundTripper {
	dialer := net.Dialer{Timeout: dialTimeout}
	if silent {
		dialer.KeepAlive = -1
	}
	connect := dialer.DialContext
	if dial, ok := ctx.Value(dialKey{}).(Dial); ok {
		connect = func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) }
	}
	insecure, _ := strconv.ParseBool(os.Getenv("K6_INSECURE_SKIP_TLS_VERIFY"))
	proxies, _ := ctx.Value(proxiesKey{}).(proxy.Chooser)
	return proxies.Transport(&http.Transport{
		DisableKeepAlives:   last, // it says Connection: close
		DisableCompression:  true, // a caller that wants it asks for it
		DialContext:         connect,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     time.Second, // over HTTP/2 it outlives its stream
		ForceAttemptHTTP2:   true,
		Protocols:           protocols(ctx),
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: insecure}, // #nosec G402 -- as k6 does where its user says so
	})
}

// exchange sends a request and returns once the head of the answer is there.
func (r Request) exchange(ctx context.Context, accept string, last bool) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r, inner(err))
	}
	usual := http.Header{"Accept": {accept}, "User-Agent": {"sse-soak"}}
	maps.Copy(req.Header, usual)
	maps.Copy(req.Header, r.Header)
	client := &http.Client{Transport: newTransport(ctx, last, r.NoKeepAlive), CheckRedirect: func(next *http.Request, via []*http.Request) error {
		return r.redirect(next, via, usual)
	}}
	response, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r, inner(err))
	}
	return response, nil
}

// mostRedirects is the default of k6 and of net/http.
const mostRedirects = 10

// redirect prepares the request that follows a redirect, or returns why there is none. usual are the headers that every
// request has. net/http fills in next anew from the first request, whatever the requests between sent.
func (r Request) redirect(next *http.Request, via []*http.Request, usual http.Header) error {
	switch {
	case r.NoRedirect:
		return http.ErrUseLastResponse
	case len(via) > mostRedirects:
		return fmt.Errorf("it was redirected more than %d times", mostRedirects)
	}
	next.Header.Del("Referer") // the query may hold a token
	follow, _ := next.Context().Value(redirectsKey{}).(bool)
	crossed := false
	for _, from := range via {
		crosses, err := sseclient.CheckRedirect(from.URL, next.URL, follow, next.ContentLength > 0)
		if err != nil {
			return fmt.Errorf("follow the redirect (status %d): %w", next.Response.StatusCode, err)
		}
		crossed = crossed || crosses
	}
	if crossed {
		for _, name := range r.described {
			next.Header.Del(name)
		}
		for name, values := range usual {
			if next.Header.Get(name) == "" {
				next.Header[name] = values
			}
		}
	}
	return nil
}

// inner removes the URL, which may have a token, from an error of net/http, and explains a refused connection.
func inner(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var proxied *proxy.Error
	if errors.Is(err, syscall.ECONNREFUSED) && !errors.As(err, &proxied) {
		return errors.New("nothing listens there (connection refused)")
	}
	return proxy.Explained(err)
}

// Do sends a request whose response is not a stream.
func Do(ctx context.Context, r Request) (Answer, error) {
	response, err := r.exchange(ctx, "*/*", true)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	return Answer{response.StatusCode, response.Header, r.beginning(response.Body)}, nil
}

// beginning is what a refusal says, in one line.
func (r Request) beginning(body io.Reader) string {
	const maxLength = 300
	text, _ := io.ReadAll(io.LimitReader(body, 4*maxLength))
	return Shorten(secret.Hide(string(text), r.secret), maxLength)
}

// Shorten is text in one line of at most n bytes.
func Shorten(text string, n int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool { return r == ' ' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }), " ")
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "") + "…"
	}
	return text
}
