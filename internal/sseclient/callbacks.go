package sseclient

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// Callbacks report what happens on a stream. Only Request is required.
//
// The goroutine that dials or reads the stream calls them, in the order Connecting, then Opened and the events if the server
// accepted, then Closed; a reconnect starts with Connecting again. Calls never overlap. They must not block: the goroutine reads
// other streams too. Pointers and slices are valid during the call only.
type Callbacks struct {
	// Request returns what the next attempt sends.
	Request func() Request
	// Renew prepares the next attempt after the first one, whose time has come. It calls proceed once, then or later, from any
	// goroutine; an error ends the stream with ReasonRenew. nil: nothing is to be prepared.
	Renew func(proceed func(error))
	// LastEventID returns the id to resume from, without CR, LF or NUL; "" for none. nil: that of the id fields.
	LastEventID func() string

	// Connecting reports the start of a dial, name resolution included.
	Connecting func(at time.Time)
	// Opened reports an event stream whose header is complete. Its dial started at started.
	Opened func(started time.Time, r *Response)
	// Event reports a block with data. at is when the read that completed it returned.
	Event func(at time.Time, e *eventstream.Event)
	// Block reports each block, also one without data; Event follows if it has data. Comment reports each comment line, before the
	// Block that contains it, which may be hours later: Mercure sends heartbeats without a blank line. Comment requires Block.
	Block   func(at time.Time, b *eventstream.Block)
	Comment func(at time.Time, text []byte)
	// Closed reports the end of the attempt or the stream, once per Connecting.
	Closed func(at time.Time, c Close)
	// Ended is the last call: no goroutine or timer of the stream is left.
	Ended func()

	// FollowUp makes the second request of a stream. It is called for each event until it returns true; the second request is then
	// sent by f.Send. nil: streams have none.
	FollowUp func(e *eventstream.Event, f *FollowUp) bool
	// Answered reports the response that accepted the second request. Its header may be complete before an event that was reported
	// already: the service may send before it answers.
	Answered func(at time.Time, r *Response)

	// Cuttable gives the stream to a caller of Cut, before the first Connecting. It returns false if there is none.
	Cuttable func(s *Stream) bool
	// Cut reports that the stream was cut, before Closed, or that its pause starts. Resumed reports the end of a pause, except if
	// the stream was stopped meanwhile.
	Cut     func(at time.Time, kind Cut)
	Resumed func(at time.Time, kind Cut)
}

// complete replaces the callbacks that are called without a check. With a second request two goroutines report: a mutex keeps
// their calls apart.
func (on *Callbacks) complete() {
	if on.Connecting == nil {
		on.Connecting = func(time.Time) {}
	}
	if on.Opened == nil {
		on.Opened = func(time.Time, *Response) {}
	}
	if on.Event == nil {
		on.Event = func(time.Time, *eventstream.Event) {}
	}
	if on.Closed == nil {
		on.Closed = func(time.Time, Close) {}
	}
	if on.Ended == nil {
		on.Ended = func() {}
	}
	if on.Cut == nil {
		on.Cut = func(time.Time, Cut) {}
	}
	if on.Resumed == nil {
		on.Resumed = func(time.Time, Cut) {}
	}
	if on.FollowUp != nil {
		mu := new(sync.Mutex)
		on.Event, on.Block, on.Comment = locked(mu, on.Event), locked(mu, on.Block), locked(mu, on.Comment)
		on.Answered, on.Cut, on.Resumed = locked(mu, on.Answered), locked(mu, on.Cut), locked(mu, on.Resumed)
	}
}

// locked returns the callback behind a mutex, nil for nil.
func locked[T any](mu *sync.Mutex, f func(time.Time, T)) func(time.Time, T) {
	if f == nil {
		return nil
	}
	return func(at time.Time, value T) {
		mu.Lock()
		defer mu.Unlock()
		f(at, value)
	}
}

// A Request asks for an event stream.
type Request struct {
	URL    string
	Method string // "": GET
	Header http.Header
	Body   string
	Plain  bool // the response is not a stream: it has any type, and ends its connection
}

var errBodyOfGet = errors.New("a GET has none: set method, as to POST")

// Check returns an error if the request cannot be sent.
func (r *Request) Check() error {
	if _, err := ParseURL(r.URL); err != nil {
		return err
	}
	for name, values := range r.Header {
		if err := CheckHeader(name, strings.Join(values, ", ")); err != nil {
			return err
		}
	}
	if r.Body != "" && (r.Method == "" || r.Method == http.MethodGet) {
		return fmt.Errorf("a body: %w", errBodyOfGet)
	}
	return nil
}

// Close is how an attempt or a stream ended.
type Close struct {
	Reason Reason
	// Err has the details; nil for client, server, no_content and interrupted.
	Err error
	// Status is the HTTP status of the response, 0 without one; with ReasonThen that of the second request.
	Status int
	// Retry is the time until the next attempt, which a Stop cancels; negative: there is none.
	Retry time.Duration
	// Opened reports whether the attempt had opened a stream. Response is a response that was not accepted; nil: none.
	Opened   bool
	Response *Response
}

// Message returns the reason as a sentence.
func (c *Close) Message() string {
	switch {
	case c.Err != nil:
		return c.Err.Error()
	case c.Reason == ReasonNoContent:
		return errNoContent.Error()
	default:
		return "the server ended the stream"
	}
}

// Reason is why an attempt or a stream ended: the tag `reason` of the metric sse_connection_closed.
type Reason string

// The reasons. The first group ends a stream, the second an attempt, the third both.
const (
	ReasonServer    Reason = "server"    // the server ended the stream, and no event was lost by that
	ReasonTruncated Reason = "truncated" // it ended inside a line, an event, a chunk, its compression or the header
	ReasonIdle      Reason = "idle"      // no byte arrived within IdleTimeout
	ReasonTooLong   Reason = "too_long"  // an event exceeded MaxEventSize, or the header 64 KiB
	ReasonCut       Reason = "cut"       // this client cut it
	ReasonThen      Reason = "then"      // the second request failed, or its event did not arrive

	ReasonConnectTimeout Reason = "connect_timeout" // no complete header within ConnectTimeout
	ReasonRefused        Reason = "refused"         // the dial failed, or k6's options block the host
	ReasonDNS            Reason = "dns"             // the name does not resolve
	ReasonTLS            Reason = "tls"             // the handshake failed
	ReasonProxy          Reason = "proxy"           // the proxy could not be reached, refused, or sent no HTTP
	ReasonStatus         Reason = "status"          // a status other than 200 and 204
	ReasonContentType    Reason = "content_type"    // not text/event-stream, or a compression that was not requested
	ReasonNoContent      Reason = "no_content"      // 204: the server wants no reconnect
	ReasonRenew          Reason = "renew"           // Renew failed

	ReasonReset       Reason = "reset"       // the connection broke: a TCP reset or timeout
	ReasonClient      Reason = "client"      // the caller closed it
	ReasonInterrupted Reason = "interrupted" // the group was interrupted
	ReasonTimeout     Reason = "timeout"     // the parameter `timeout` of sse.open() passed
	ReasonError       Reason = "error"       // anything else, as broken HTTP
)
