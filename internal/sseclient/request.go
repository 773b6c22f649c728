package sseclient

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/proxy"
)

// A request is one HTTP request. Each attempt and each redirect has its own.
type request struct {
	url             *url.URL
	method          string
	header          http.Header // of the user; read-only
	body            string
	jar             http.CookieJar // nil: none
	userAgent       string
	lastEventID     string
	maxRedirects    int
	followRedirects bool   // to other origins
	acceptEncoding  string // value of Accept-Encoding; "": none
	plain           bool   // see Request.Plain
	anyType         bool   // the response is a stream of any type

	Sharing
}

// A requestEncoder contains the buffers for encoding a request. A pool reuses them in a ramp of thousands of requests.
type requestEncoder struct {
	buf    bytes.Buffer
	header http.Header
}

var requestEncoders = sync.Pool{New: func() any { return &requestEncoder{header: make(http.Header)} }}

// send sends the request as HTTP/1.1 in one write, and returns the number of bytes written.
func (r *request) send(to io.Writer, route *proxy.Proxy) (n int, err error) {
	e := requestEncoders.Get().(*requestEncoder)
	defer requestEncoders.Put(e)
	if err := http1.WriteRequest(&e.buf, r.httpRequest(e), route); err != nil {
		return 0, fmt.Errorf("encode the request: %w", err)
	}
	return to.Write(e.buf.Bytes())
}

// httpRequest returns the request for net/http. The request is valid until the next use of the encoder.
func (r *request) httpRequest(e *requestEncoder) *http.Request {
	e.buf.Reset()
	clear(e.header)
	r.fill(e.header)
	req := &http.Request{
		Method: r.method, URL: r.url, Host: r.url.Host, Header: e.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if host := e.header.Get("Host"); host != "" {
		req.Host = host
		e.header.Del("Host")
	}
	req.Close = r.plain
	if r.body != "" {
		req.Body = io.NopCloser(strings.NewReader(r.body))
		req.ContentLength = int64(len(r.body))
	}
	http1.AddCredentials(req)
	if r.jar != nil {
		for _, c := range r.jar.Cookies(r.url) {
			req.AddCookie(c)
		}
	}
	return req
}

// fill sets the header fields that do not depend on the URL. The user's header fields replace the defaults.
func (r *request) fill(h http.Header) {
	if r.plain {
		h["Accept"] = acceptAny
	} else {
		h["Accept"] = acceptValue
		h["Cache-Control"] = cacheValue
	}
	if r.acceptEncoding != "" {
		h.Set("Accept-Encoding", r.acceptEncoding)
	}
	h.Set("User-Agent", r.userAgent) // empty: no User-Agent is sent
	if r.lastEventID != "" {
		h.Set("Last-Event-ID", r.lastEventID)
	}
	for name, values := range r.header {
		h[name] = values
	}
}

// Header values that all requests share; read-only.
var (
	acceptValue = []string{"text/event-stream"}
	acceptAny   = []string{"*/*"}
	cacheValue  = []string{"no-cache"}
)

// redirect returns the request that follows a redirect to location (RFC 9110, section 15.4). 301, 302 and 303 turn any
// method except HEAD into GET; 307 and 308 keep the method. Another origin gets neither the user's headers nor a body;
// see checkRedirect.
func (r *request) redirect(status int, location string) (*request, error) {
	to, err := resolveURL(r.url, location)
	if err != nil {
		return nil, fmt.Errorf("follow the redirect (status %d): %w", status, err)
	}
	next := *r
	next.url, next.header = to, r.header.Clone()
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect &&
		r.method != http.MethodHead && r.method != http.MethodGet {
		next.method, next.body = http.MethodGet, ""
	}
	next.header.Del("Host")
	if next.method != r.method { // the request no longer has a body (Fetch standard, section 4.4)
		for _, name := range []string{"Content-Encoding", "Content-Language", "Content-Location", "Content-Type"} {
			next.header.Del(name)
		}
	}
	crosses, err := checkRedirect(r.url, to, r.followRedirects, next.body != "")
	if err != nil {
		return nil, fmt.Errorf("follow the redirect (status %d): %w", status, err)
	}
	if crosses {
		next.header = nil
	}
	return &next, nil
}

// CheckHeader returns an error for an invalid header field (RFC 9110, 5.1 and 5.5), such as a value with CR or LF
// (CWE-93).
func CheckHeader(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("invalid header name %q", name)
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		return fmt.Errorf("invalid value of header %q: it contains a line break or NUL", name)
	}
	return nil
}
