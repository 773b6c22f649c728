package sseclient

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options are the settings of streams. Many streams share them, so they must not change after the first use.
type Options struct {
	ConnectTimeout  time.Duration // until the response header is complete; 0: none
	IdleTimeout     time.Duration // without a byte from the server; 0: none
	FollowUpTimeout time.Duration // until the event of a second request, and for the request; 0: none
	Reconnect       Reconnect
	ReconnectDelay  time.Duration // until the server sets another one
	ExactDelay      bool          // each reconnect waits for that delay: no backoff, jitter or Retry-After
	LastEventID     string        // sent with the first attempt, as if a former stream had ended with it
	MaxRedirects    int
	FollowRedirects bool   // to other origins
	MaxEventSize    int    // in bytes; 0: eventstream.DefaultLimit
	Accept          string // value of Accept-Encoding; "": none
	AnyType         bool   // the response may have another type than text/event-stream
	Sharing         Sharing
	Resume          Resume
	Jar             http.CookieJar // nil: none
	Debug           func() *Debug  // of one request; nil: none
	LateHeader      bool           // the response header may take long: others may dial meanwhile
}

// Defaults of a client.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultReconnectDelay = time.Second
)

// Reconnect is what a stream does when it or an attempt ends.
type Reconnect int32

// The values of Reconnect.
const (
	ReconnectOff      Reconnect = iota
	ReconnectStandard           // by the HTML standard: after a stream or a network error, not after a wrong status or type
	ReconnectAlways             // also after a status that may be better at the next attempt
)

// Protocol is which versions of HTTP a stream may use.
type Protocol uint8

// The values of Protocol.
const (
	HTTPAny Protocol = iota // over TLS what the server chooses (ALPN), else HTTP/1.1
	HTTP1                   // HTTP/1.1
	HTTP2                   // HTTP/2, over plain HTTP by prior knowledge
)

// ParseProtocol reads a version: auto, 1.1 or 2.
func ParseProtocol(version string) (Protocol, error) {
	switch version {
	case "auto":
		return HTTPAny, nil
	case "1.1":
		return HTTP1, nil
	case "2":
		return HTTP2, nil
	}
	return 0, fmt.Errorf("%q is not a version of HTTP: write 'auto', '1.1' or '2'", version)
}

// ALPN names of the versions (RFC 7301, section 6).
const (
	alpn1 = "http/1.1"
	alpn2 = "h2"
)

// alpn returns what a client offers in the TLS handshake.
func (p Protocol) alpn() []string {
	switch p {
	case HTTP1:
		return []string{alpn1}
	case HTTP2:
		return []string{alpn2}
	default:
		return []string{alpn2, alpn1}
	}
}

// Sharing is how a stream may share a connection with others.
type Sharing struct {
	PerConnection uint16 // maximum of streams on a connection over HTTP/2; 0: as many as the server allows
	Protocol      Protocol
}

// Resume is how a reconnect sends the last event ID.
type Resume struct {
	Off   bool   // it does not
	Query string // as a parameter of that name; "": as the header Last-Event-ID
}

// apply puts the last event ID into a request.
func (by Resume) apply(r *request, id string) {
	switch {
	case id == "" || by.Off:
	case by.Query == "":
		r.lastEventID = id
	default:
		u := *r.url
		u.RawQuery = withParameter(u.RawQuery, by.Query, id)
		r.url = &u
	}
}

// withParameter sets a parameter of a query. The others keep their order and encoding: a server may compare them byte by byte, as
// for a signed URL.
func withParameter(query, name, value string) string {
	var out []string
	for pair := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if key, err := url.QueryUnescape(key); pair != "" && (err != nil || key != name) {
			out = append(out, pair)
		}
	}
	return strings.Join(append(out, url.QueryEscape(name)+"="+url.QueryEscape(value)), "&")
}
