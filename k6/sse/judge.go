package sse

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/k6/sse/coding"
)

// explainFor is for how long at most an error response's body is read.
const explainFor = 250 * time.Millisecond

// judge returns nil for an event stream, section 9.2.3 of the HTML standard: status
// 200 and the type text/event-stream, or any where a script wants that. A body in a content coding that was not asked for, or
// is not known, is no event stream that can be read as it comes.
func judge(a *answer, asked *request) *failure {
	f := &failure{status: a.status}
	packed := a.coding()
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";") // wrong parameters are none (MIME Sniffing standard, section 4.4)
	switch {
	case a.status == http.StatusNoContent:
		f.reason = ReasonNoContent
		f.err = errNoContent
	case a.proxyRefused():
		f.reason = ReasonProxy
		f.err = a.proxy.Refused("the request", fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), a.header, a.refusal())
	case a.status != http.StatusOK:
		f.reason = ReasonStatus
		f.err = fmt.Errorf("unexpected status %d %s%s", a.status, http.StatusText(a.status), a.explain())
		f.retryAfter = retryAfter(a.header.Get("Retry-After"), time.Now())
	case !strings.EqualFold(strings.TrimSpace(media), "text/event-stream") && !asked.anyType:
		f.reason = ReasonContentType
		f.err = fmt.Errorf("the response is %q, not text/event-stream", a.header.Get("Content-Type"))
	case packed != "" && !asked.asks(packed):
		f.reason = ReasonContentType
		f.err = fmt.Errorf("the response has the content-encoding %q, which was not asked for: set acceptEncoding, or have the service or its proxy send the stream as it is", packed)
	case packed != "" && !coding.Known(packed):
		f.reason = ReasonContentType
		f.err = fmt.Errorf("the response has the content-encoding %q: only %s can be undone, one at a time", packed, coding.Browser)
	default:
		return nil
	}
	return f
}

var errNoContent = errors.New("the server answered 204 No Content: it wants no further connection")

// proxyRefused says that it was the proxy that answered: no service asks for the credentials of one.
func (a *answer) proxyRefused() bool {
	return a.proxy.Forwards() && a.status == http.StatusProxyAuthRequired
}

// refusal is the body of an error response, which is read for a moment.
func (a *answer) refusal() io.Reader {
	_ = a.conn.SetReadDeadline(time.Now().Add(explainFor))
	b := new(body)
	b.begin(a, parked{a.conn})
	if packed := a.coding(); coding.Known(packed) {
		plain, _ := coding.New(packed, b) // it is known
		return plain
	}
	return b
}

// explain is what an error response says, and the proxy that it came through: it may be the proxy's. It begins with ": " or " ".
func (a *answer) explain() string {
	said := proxy.Sentence(a.refusal())
	if said == "" && a.proxy.Forwards() {
		said = proxy.Told(a.header)
	}
	if said != "" {
		said = ": " + said
	}
	return said + a.proxy.Through()
}

// retryAfter reads the header field of RFC 9110, section 10.2.3; 0 where it says nothing.
func retryAfter(value string, now time.Time) time.Duration {
	const longest = 24 * time.Hour
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, longest)
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return min(at.Sub(now), longest)
	}
	return 0
}
