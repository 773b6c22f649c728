package sseclient

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

// A Response is a response whose header is complete.
type Response struct {
	Status int
	Proto  string
	Header http.Header
	URL    *url.URL  // after redirects
	At     time.Time // when the header was complete
	// Started is when the dial of a second request started.
	Started time.Time
	Remote  net.Addr
	TLS     *tls.ConnectionState // nil: none
	// OtherOrigin reports whether redirects led to another origin than that of the request.
	OtherOrigin bool
	// HTTP2 reports whether an event stream uses HTTP/2, FirstOnConnection whether it is the first one on its
	// connection.
	HTTP2, FirstOnConnection bool

	conn       net.Conn // the TLS or the dialed connection
	requestURL *url.URL // before redirects
	proxy      *proxy.Proxy
	frame      framing
	leftover   []byte     // bytes of the body that were read with the header
	reused     bool       // the connection had another response before
	persistent bool       // the header allows another response on the connection
	idle       *idleConns // takes the connection after the body; nil: it is closed
}

const errHeaderTooLong = http1.HeadTooLongError(http1.MaxHead)

// readHead reads the header of the final response.
func (r *Response) readHead(method string) error {
	in := http1.Borrow(r.conn)
	defer in.Return()
	resp, err := in.Head(&http.Request{Method: method}) //nolint:bodyclose // the body is read from r.conn, which the caller closes
	if err != nil {
		return err
	}
	r.At = time.Now()
	r.leftover = bytes.Clone(in.Buffered())
	r.Status, r.Proto, r.Header = resp.StatusCode, resp.Proto, resp.Header
	r.frame = framingOf(resp)
	r.persistent = resp.ProtoAtLeast(1, 1) && !resp.Close && r.frame.kind != untilClose
	return nil
}

// Coding returns the content coding of the body, "" for none.
func (r *Response) Coding() string { return coding.Name(r.Header.Values("Content-Encoding")...) }

// Location returns the target of a redirect, "" for other responses.
func (r *Response) Location() string {
	if !slices.Contains([]int{301, 302, 303, 307, 308}, r.Status) {
		return ""
	}
	return r.Header.Get("Location")
}

// IsEventStream reports whether the response has status 200 and the type text/event-stream.
func (r *Response) IsEventStream() bool {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";") // invalid parameters are ignored (MIME Sniffing standard, section 4.4)
	return r.Status == http.StatusOK && strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
}

// explainFor limits the time for reading the body of an error response.
const explainFor = 250 * time.Millisecond

// validate returns nil for an event stream (HTML standard, section 9.2.3): status 200 and the type text/event-stream,
// or any type if the caller accepts it. A body with a content coding that was not requested, or is not known, cannot
// be read as it arrives.
func (r *Response) validate(req *request) *failure {
	f := &failure{status: r.Status}
	packed := r.Coding()
	switch {
	case r.Status == http.StatusNoContent:
		f.reason = ReasonNoContent
		f.err = errNoContent
	case r.Status != http.StatusOK:
		f.reason = ReasonStatus
		f.err = fmt.Errorf("unexpected status %d %s%s", r.Status, http.StatusText(r.Status), r.explain())
		f.retryAfter = retryAfter(r.Header.Get("Retry-After"), time.Now())
	case !r.IsEventStream() && !req.anyType:
		f.reason = ReasonContentType
		f.err = fmt.Errorf("the response is %q, not text/event-stream", r.Header.Get("Content-Type"))
	case packed != "" && !req.accepts(packed):
		f.reason = ReasonContentType
		f.err = fmt.Errorf("the response has the content-encoding %q, which was not requested; set acceptEncoding, or turn off compression in the service or its proxy", packed)
	case packed != "" && !coding.Supported(packed):
		f.reason = ReasonContentType
		f.err = fmt.Errorf("unsupported content-encoding %q; use one of %s", packed, coding.Browser)
	default:
		return nil
	}
	return f
}

var errNoContent = errors.New("the server responded with 204 No Content, so the client must not reconnect")

// proxyRefused reports whether the response is a refusal of the proxy. No service sends status 407.
func (r *Response) proxyRefused() bool {
	return r.proxy.Forwards() && r.Status == http.StatusProxyAuthRequired
}

// refusal returns the body of an error response, which can be read for explainFor.
func (r *Response) refusal() io.Reader {
	_ = r.conn.SetReadDeadline(time.Now().Add(explainFor))
	b := new(body)
	b.begin(r, blocking{r.conn})
	if packed := r.Coding(); coding.Supported(packed) {
		decoder, _ := coding.New(packed, b) // New fails only for unsupported codings
		return decoder
	}
	return b
}

// explain returns the text of an error response and its proxy, which may have sent it. It starts with ": " or " ".
func (r *Response) explain() string {
	detail := proxy.Sentence(r.refusal())
	if detail == "" && r.proxy.Forwards() {
		detail = proxy.ErrorHeader(r.Header)
	}
	if detail != "" {
		detail = ": " + detail
	}
	return detail + r.proxy.Through()
}

// retryAfter parses the header field of RFC 9110, section 10.2.3. It returns 0 for an invalid value.
func retryAfter(value string, now time.Time) time.Duration {
	const maxDelay = 24 * time.Hour
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxDelay)
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return min(at.Sub(now), maxDelay)
	}
	return 0
}
