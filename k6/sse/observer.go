package sse

import (
	"net/http"
	"time"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// Observer is told in Go what happens on a connection, by the goroutine that dials
// and reads it, with times taken there. No JS runs for it.
//
// The calls for one EventSource never overlap and come in the order Connecting,
// then Opened and its Events where the server accepted, then Closed; a reconnect
// begins with Connecting again. An observer must not block: the next read waits
// for it. It must not be given to two EventSources at once unless it locks.
type Observer interface {
	// Connecting: a dial begins (name resolution included).
	Connecting(at time.Time)
	// Opened: the headers of a 200 text/event-stream response are complete.
	Opened(at time.Time)
	// Event: one event was dispatched. at is when the read that completed it
	// returned. e is valid only during the call.
	Event(at time.Time, e *eventstream.Event)
	// Closed: the attempt or the stream ended; exactly once per Connecting.
	Closed(at time.Time, c Close)
}

// BlockObserver is an Observer that also sees what dispatches no event: heartbeats that
// are comments, and names, ids or retry times without data. Its calls come in the order
// of the stream, among those of Observer and under the same promises: on the reader's
// goroutine, with the time at which the read that completed the line or block returned,
// without an allocation and without JS.
type BlockObserver interface {
	Observer
	// Comment: one comment line was read. It comes before the Block that the line is
	// part of, which may be hours later: Mercure's heartbeat is a line without a blank
	// one after it. text is valid only during the call.
	Comment(at time.Time, text []byte)
	// Block: a blank line has ended a block. If it has data, Event follows with the same
	// event, and then any JS. b is valid only during the call.
	Block(at time.Time, b *eventstream.Block)
}

// AnswerObserver is an Observer that is told of the second request, the option `then`.
type AnswerObserver interface {
	Observer
	// Answered: the second request of the open stream got the status that it should; a
	// stream without an option `then` never has one. It comes between Opened and Closed,
	// once per stream; another status, or none, is told by Closed with ReasonThen. at is
	// when its headers were complete, which may be before the time of an Event told
	// already: the service may begin before it answers.
	Answered(at time.Time, status int)
}

// HeadObserver is an Observer that sees the response headers of each stream.
type HeadObserver interface {
	Observer
	// Head comes right before Opened, of the same goroutine. header must not be changed.
	Head(header http.Header)
}

// CodingObserver is an Observer that is told which streams come compressed.
type CodingObserver interface {
	Observer
	// Coded comes right before Opened, of the same goroutine, of a stream with a content coding: gzip, deflate, br or zstd.
	Coded(coding string)
}

// SharedObserver is an Observer that is told which streams came over HTTP/2.
type SharedObserver interface {
	Observer
	// Shared comes right before Opened, of the same goroutine, of a stream over HTTP/2. first says that no stream was opened on
	// its connection before.
	Shared(first bool)
}

// RedirectObserver is an Observer that is told which streams another origin than that of their URL serves.
type RedirectObserver interface {
	Observer
	// Redirected comes right before Opened, of the same goroutine, of a stream that redirects led to another origin.
	Redirected(origin string)
}

// ResumeObserver is an Observer that knows better than the id fields where a stream is to
// go on, as where a service has the id in its data.
type ResumeObserver interface {
	Observer
	// LastEventID is what the attempt that Connecting has just told sends as the last
	// event ID, in the way of the option resume; "" for none. It has no CR, LF or NUL.
	LastEventID() string
}

// Close says how an attempt or a stream ended.
type Close struct {
	Reason Reason
	// Err tells more in words; nil for client, server, no_content and interrupted.
	Err error
	// Status is the HTTP status of the response, 0 where none was read. With ReasonThen
	// it is that of the second request.
	Status int
	// Retry is the time until the next attempt; below 0 no attempt follows. One that
	// was announced does not come if the script closes the source meanwhile.
	Retry time.Duration
}

// Reason is why an attempt or a stream ended: the tag `reason` of the metric
// sse_connection_closed and the property of the error event.
type Reason string

// The reasons. The first group ends a stream, the second an attempt, the third both.
const (
	ReasonServer    Reason = "server"    // the server ended the stream, and no event was lost by that
	ReasonTruncated Reason = "truncated" // it ended inside a line, an event, a chunk, its compression or the header
	ReasonIdle      Reason = "idle"      // idleTimeout went by without one byte
	ReasonTooLong   Reason = "too_long"  // an event exceeded maxEventSize, or the header 64 KiB
	ReasonCut       Reason = "cut"       // a CutObserver had this client cut it
	ReasonThen      Reason = "then"      // the second request failed, or the event that it waits for did not come

	ReasonConnectTimeout Reason = "connect_timeout" // no complete header within connectTimeout
	ReasonRefused        Reason = "refused"         // the dial failed, or k6's options block the host
	ReasonDNS            Reason = "dns"             // the name does not resolve
	ReasonTLS            Reason = "tls"             // the handshake failed
	ReasonProxy          Reason = "proxy"           // the proxy could not be reached, refused, or answered no HTTP
	ReasonStatus         Reason = "status"          // a status other than 200 and 204
	ReasonContentType    Reason = "content_type"    // not text/event-stream, or compressed in a way that was not asked for
	ReasonNoContent      Reason = "no_content"      // 204: the server wants no reconnect

	ReasonRenew Reason = "renew" // the option renew threw, or gave what cannot be sent

	ReasonReset       Reason = "reset"       // the connection broke: a TCP reset or timeout
	ReasonClient      Reason = "client"      // the script closed it
	ReasonInterrupted Reason = "interrupted" // the VU's context ended, or a handler threw
	ReasonTimeout     Reason = "timeout"     // the parameter `timeout` of open() went by
	ReasonError       Reason = "error"       // anything else, as broken HTTP
)

// nopObserver stands in where no ledger is given.
type nopObserver struct{}

var _ Observer = nopObserver{}

func (nopObserver) Connecting(time.Time)                {}
func (nopObserver) Opened(time.Time)                    {}
func (nopObserver) Event(time.Time, *eventstream.Event) {}
func (nopObserver) Closed(at time.Time, c Close)        { _, _ = at, c }
