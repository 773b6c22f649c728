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

// A Response is an HTTP response whose header has arrived. Its body is read separately.
type Response struct {
	Status  int
	Proto   string
	Header  http.Header
	URL     *url.URL  // after redirects
	At      time.Time // arrival of the complete header
	Started time.Time // start of the dial, for a second request only
	Remote  net.Addr
	TLS     *tls.ConnectionState // nil: no TLS
	// OtherOrigin reports whether redirects led to another origin.
	OtherOrigin bool
	// HTTP2 reports whether an event stream uses HTTP/2. FirstOnConnection reports whether it is the first event stream
	// on its HTTP/2 connection.
	HTTP2, FirstOnConnection bool

	conn       net.Conn // the dialed connection, a tls.Conn over it, or an h2Pipe
	requestURL *url.URL // before redirects
	proxy      *proxy.Proxy
	frame      framing
	leftover   []byte     // bytes of the body that were read with the header
	isReused   bool       // the connection had an earlier response
	persistent bool       // the header allows another response on the connection
	idle       *idleConns // receives the connection after the body; nil: the connection is closed
}

const errHeaderTooLong = http1.HeadTooLongError(http1.MaxHead)

func (r *Response) readHead(method string) error {
	in := http1.NewReader(r.conn)
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

// Coding returns the content coding of the body, or "" for none.
func (r *Response) Coding() string { return coding.Name(r.Header.Values("Content-Encoding")...) }

// Location returns the header Location of a redirect, or "" for any other response.
func (r *Response) Location() string {
	if !slices.Contains([]int{301, 302, 303, 307, 308}, r.Status) {
		return ""
	}
	return r.Header.Get("Location")
}

// IsEventStream reports whether the response has status 200 and the type text/event-stream.
func (r *Response) IsEventStream() bool {
	// Invalid parameters are ignored (MIME Sniffing standard, section 4.4).
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return r.Status == http.StatusOK && strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
}

// validate returns nil for an event stream (HTML standard, section 9.2.3): status 200 and the type text/event-stream,
// or any type if the caller accepts it. The stream must have no content coding, or a supported one that was requested.
func (r *Response) validate(req *request) *failure {
	f := &failure{status: r.Status}
	contentCoding := r.Coding()
	switch {
	case r.Status == http.StatusNoContent:
		f.reason = ReasonNoContent
		f.err = errNoContent
	case r.Status != http.StatusOK:
		f.reason = ReasonStatus
		f.err = r.statusError()
		f.retryAfter = retryAfter(r.Header.Get("Retry-After"), time.Now())
	case !r.IsEventStream() && !req.anyType:
		f.reason = ReasonContentType
		f.err = fmt.Errorf("the response has the type %q, not text/event-stream", r.Header.Get("Content-Type"))
	case contentCoding != "" && !req.accepts(contentCoding):
		f.reason = ReasonContentType
		f.err = fmt.Errorf("the response has the content-encoding %q, which was not requested; "+
			"set acceptEncoding, or turn off compression in the service or its proxy", contentCoding)
	case contentCoding != "" && !coding.Supported(contentCoding):
		f.reason = ReasonContentType
		f.err = fmt.Errorf("unsupported content-encoding %q; use one of %s", contentCoding, coding.Browser)
	default:
		return nil
	}
	return f
}

var errNoContent = errors.New("the server responded with 204 No Content, so the client must not reconnect")

// refusal returns the decoded body of an error response. Reads fail after proxy.RefusalTimeout.
func (r *Response) refusal() io.Reader {
	_ = r.conn.SetReadDeadline(time.Now().Add(proxy.RefusalTimeout))
	b := new(body)
	b.begin(r, blockingConn{r.conn})
	if contentCoding := r.Coding(); coding.Supported(contentCoding) {
		decoder, _ := coding.New(contentCoding, b) // New fails only for unsupported codings
		return decoder
	}
	return b
}

// statusError returns the error for an unexpected status. Its text contains the reason from the body, and names the
// proxy if there is one.
func (r *Response) statusError() error {
	detail := proxy.Sentence(r.refusal())
	if detail == "" && r.proxy.Forwards() {
		detail = proxy.ErrorHeader(r.Header)
	}
	if detail != "" {
		detail = ": " + detail
	}
	return fmt.Errorf("unexpected status %s%s%s", http1.StatusText(r.Status), detail, r.proxy.ErrorSuffix())
}

// retryAfter returns the delay of a Retry-After (RFC 9110, section 10.2.3), but at most 24 hours. It returns 0 for an
// invalid value and for a time in the past.
func retryAfter(value string, now time.Time) time.Duration {
	const maxDelay = 24 * time.Hour
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		return min(time.Duration(seconds)*time.Second, maxDelay)
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return min(at.Sub(now), maxDelay)
	}
	return 0
}
