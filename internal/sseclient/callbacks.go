package sseclient

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// Callbacks report each step of a stream. Many streams can share one value; Stream.Value distinguishes the streams.
// Only Request is required.
//
// The goroutine that dials or reads the stream calls the callbacks, with some exceptions. Group.Add calls Cuttable,
// Stream.Open calls the first Request, and a timer calls Renew. The goroutine of a second request calls Answered and
// may call Closed. After a failed Renew, a new goroutine calls Connecting and Closed. Ended may run in any goroutine.
//
// The order is Connecting, then Opened and the events if the server accepted the request, then Closed. A reconnect
// starts with Connecting again. Calls for one stream never overlap. A callback must not block, because its goroutine
// also reads other streams. Pointers and slices are valid only during the call, except the *Stream and the *FollowUp.
type Callbacks struct {
	// Request returns the request of the next attempt.
	Request func(s *Stream) Request
	// Renew prepares each attempt after the first one, when the attempt is due. It must call proceed once, at any time
	// and from any goroutine; an error ends the stream with ReasonRenew. nil: attempts need no preparation.
	Renew func(s *Stream, proceed func(error))
	// LastEventID returns the id to resume from, or "" for none. The id must not contain CR, LF or NUL. nil: the stream
	// resumes from its own last event ID.
	LastEventID func(s *Stream) string

	// Connecting reports the start of a dial, name resolution included.
	Connecting func(s *Stream, at time.Time)
	// Opened reports the complete response header of an event stream. started is the time at which the dial started.
	Opened func(s *Stream, started time.Time, r *Response)
	// Event reports a block with data. at is the time of the read that completed the block.
	Event func(s *Stream, at time.Time, e *eventstream.Event)
	// Block reports each block. If the block has data, Event follows. Comment reports each comment line at once,
	// because the block may end hours later: Mercure sends heartbeats without a blank line. Comment requires Block.
	Block   func(s *Stream, at time.Time, b *eventstream.Block)
	Comment func(s *Stream, at time.Time, text []byte)
	// Closed reports the end of the attempt or the stream, once per Connecting.
	Closed func(s *Stream, at time.Time, c Close)
	// Ended is the last call. It must not call any method of the stream other than Value, because Stop may hold the
	// mutex of the stream.
	Ended func(s *Stream)

	// FollowUp reports whether the second request follows an event. It is called for each event until it returns true.
	// The request is then sent with f.Send, now or later. nil: streams have no second request.
	FollowUp func(s *Stream, e *eventstream.Event, f *FollowUp) bool
	// Answered reports the response that accepted the second request. Events that the service sent before this
	// response may have been reported already.
	Answered func(s *Stream, at time.Time, r *Response)

	// Cuttable passes the stream to a caller of Cut, before the first Connecting. It returns false if that
	// caller will never cut the stream.
	Cuttable func(s *Stream) bool
	// Cut reports that the stream was cut, in which case Closed follows, or that its pause starts. Resumed reports the
	// end of a pause, unless the stream was stopped meanwhile.
	Cut     func(s *Stream, at time.Time, kind Cut)
	Resumed func(s *Stream, at time.Time, kind Cut)
}

// report calls a callback unless it is nil. If the stream has a second request, a mutex prevents overlapping calls.
func report[T any](s *Stream, callback func(*Stream, time.Time, T), at time.Time, value T) {
	if callback == nil {
		return
	}
	if s.calls != nil {
		s.calls.Lock()
		defer s.calls.Unlock()
	}
	callback(s, at, value)
}

// A Request is a request for an event stream.
type Request struct {
	URL    string
	Method string // "": GET
	Header http.Header
	Body   string
	Plain  bool // the response is not a stream: any type is accepted, and the connection closes after the response
}

// ErrBodyOfGet is the error for a GET request with a body.
var ErrBodyOfGet = errors.New("a GET request cannot have a body; set method to POST")

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
		return fmt.Errorf("body: %w", ErrBodyOfGet)
	}
	return nil
}

// A Close is the end of an attempt or a stream.
type Close struct {
	Reason Reason
	// Err gives the details. In Closed it is nil for server, no_content and the reasons passed to Stop.
	Err error
	// Status is the HTTP status, or 0 without a response. With ReasonThen, it is the status of the second response.
	Status int
	// Retry is the time until the next attempt, or negative if no attempt follows. A Stop cancels the attempt.
	Retry time.Duration
	// ReconnectionTime is the value of the latest valid retry field, or 0 without such a field.
	ReconnectionTime time.Duration
	// Opened reports whether the attempt had opened a stream.
	Opened bool
	// Response is the response of a failed attempt; nil if there was no response.
	Response *Response
}

// Message returns the reason as text. It is meant for the end of a stream or an attempt that the caller did not stop.
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

// A Reason is the cause of the end of an attempt or a stream: the tag `reason` of the metric sse_connection_closed.
type Reason string

// The reasons, in three groups. The first group ends a stream; truncated and too_long also end an attempt. The second
// group ends an attempt. The third group ends a stream or an attempt.
const (
	ReasonServer    Reason = "server"    // the server ended the stream outside an event
	ReasonTruncated Reason = "truncated" // the end was inside a line, an event, a TLS record, the body or the header
	ReasonIdle      Reason = "idle"      // no byte arrived within IdleTimeout
	ReasonTooLong   Reason = "too_long"  // an event exceeded MaxEventSize, or the header exceeded 64 KiB
	ReasonCut       Reason = "cut"       // this client cut the stream
	ReasonThen      Reason = "then"      // the second request failed, or the event before it did not arrive

	ReasonConnectTimeout Reason = "connect_timeout" // no complete header within ConnectTimeout
	ReasonRefused        Reason = "refused"         // the dial failed, or k6's options block the host
	ReasonDNS            Reason = "dns"             // the name does not resolve
	ReasonTLS            Reason = "tls"             // the handshake failed
	ReasonProxy          Reason = "proxy"           // the proxy was unreachable, refused the request or did not respond with HTTP
	ReasonStatus         Reason = "status"          // a status other than 200 or 204
	ReasonContentType    Reason = "content_type"    // not text/event-stream, or a compression that was not requested or is unsupported
	ReasonNoContent      Reason = "no_content"      // 204: the client must not reconnect
	ReasonRenew          Reason = "renew"           // Renew failed

	ReasonReset       Reason = "reset"       // the connection broke: a reset, a TCP timeout or a lost route
	ReasonClient      Reason = "client"      // the caller closed the stream
	ReasonInterrupted Reason = "interrupted" // the group was interrupted
	ReasonTimeout     Reason = "timeout"     // the `timeout` that was passed to sse.open() has elapsed
	ReasonError       Reason = "error"       // any other error, such as malformed HTTP
)
