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
	FollowUpTimeout time.Duration // limit of the wait until FollowUp returns true, and separately of the second request; 0: none
	Reconnect       Reconnect
	ReconnectDelay  time.Duration // until the server sets another one
	ExactDelay      bool          // reconnect without backoff, jitter or Retry-After
	LastEventID     string        // sent until an event sets another one
	MaxRedirects    int
	FollowRedirects bool   // to other origins
	MaxEventSize    int    // in bytes; 0: eventstream.DefaultLimit
	AcceptEncoding  string // value of Accept-Encoding; "": not sent
	AnyType         bool   // accept types other than text/event-stream
	Sharing         Sharing
	Resume          Resume
	Jar             http.CookieJar // nil: none
	Debug           func() *Debug  // returns the log for one request; nil: none
	LateHeader      bool           // the response header may arrive late, so other streams may dial before it arrives
}

// Defaults of a client.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultReconnectDelay = time.Second
)

// A Reconnect is the rule by which a stream reconnects.
type Reconnect int32

// The values of Reconnect.
const (
	ReconnectOff      Reconnect = iota
	ReconnectStandard           // HTML standard: after an end or a network error, but not after a wrong status or type
	ReconnectAlways             // also after a status that may be temporary
)

// A Protocol is the set of HTTP versions that a stream may use.
type Protocol uint8

// The values of Protocol.
const (
	HTTPAny Protocol = iota // the version that the server chooses in the TLS handshake, or HTTP/1.1 without TLS
	HTTP1                   // HTTP/1.1
	HTTP2                   // HTTP/2, by prior knowledge if the stream does not use TLS (RFC 9113, section 3.3)
)

// ParseProtocol parses a version: auto, 1.1 or 2.
func ParseProtocol(version string) (Protocol, error) {
	switch version {
	case "auto":
		return HTTPAny, nil
	case "1.1":
		return HTTP1, nil
	case "2":
		return HTTP2, nil
	}
	return 0, fmt.Errorf("must be auto, 1.1 or 2, got %q", version)
}

// ALPN names of the versions (RFC 7301, section 6).
const (
	alpn1 = "http/1.1"
	alpn2 = "h2"
)

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

// A Sharing is the setting that determines which streams share connections.
type Sharing struct {
	StreamsPerConnection uint16 // maximum number of streams per HTTP/2 connection; 0: as many as the server allows
	Protocol             Protocol
}

// A Resume is the setting that determines how a request sends the last event ID.
type Resume struct {
	Off   bool   // do not send it
	Query string // name of a query parameter; "": send the header Last-Event-ID
}

func (resume Resume) apply(r *request, id string) {
	switch {
	case id == "" || resume.Off:
	case resume.Query == "":
		r.lastEventID = id
	default:
		u := *r.url
		u.RawQuery = withParameter(u.RawQuery, resume.Query, id)
		r.url = &u
	}
}

// withParameter sets a parameter of a query. Other parameters keep their order and encoding, because a server may
// compare them byte by byte, as in a signed URL.
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
