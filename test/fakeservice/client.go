package fakeservice

import "time"

// A Client is the record of the streams of one client id.
type Client struct {
	ID             string
	EndRequestedAt time.Time // time of the first request to end a stream
	Spans          []OpenSpan
	Open           *Stream // the open stream; nil: none
}

// An OpenSpan is the time span in which a stream was open. A Service sets only From and To.
type OpenSpan struct {
	From, To  time.Time // To is zero while the stream is open
	EndReason string    // how the stream ended; "" while it is open
	Resumed   bool      // the client resumed the previous stream, or would have if its last event id had not been reset
	WithID    bool      // the request contained a Last-Event-ID
	Reported  bool      // the client reported in its next request how much of the stream it had read
}

// Values of OpenSpan.EndReason.
const (
	EndClient    = "client"    // the client closed the stream
	EndRequested = "requested" // the service ended the stream at the request of the client
	EndInOrder   = "in order"  // the service ended the stream without such a request
	EndReset     = "reset"     // the service reset the connection
)

// Last returns the time span of the client's latest stream. The client must have had a stream.
func (c *Client) Last() *OpenSpan { return &c.Spans[len(c.Spans)-1] }

// Begin records that a stream was opened.
func (c *Client) Begin(s *Stream) {
	c.Open = s
	c.Spans = append(c.Spans, OpenSpan{From: time.Now()})
}
