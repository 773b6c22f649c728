package fakeservice

import "time"

// A Client is the record of the streams of one client id.
type Client struct {
	ID             string
	EndRequestedAt time.Time // time of the first request to end a stream
	Spans          []OpenSpan
	Open           *Stream // the open stream; nil: none
}

// An OpenSpan is the time span in which a stream was open.
type OpenSpan struct {
	From, To  time.Time // To is zero while the stream is open
	EndReason string    // how the stream ended; "" while it is open
	Resumed   bool      // the stream continues the previous one, or would if the service had not reset the client's id
	WithID    bool      // the client sent the id of its last message in the request
	Reported  bool      // the client reported in its next request how much of the stream it had read
}

// Values of OpenSpan.EndReason.
const (
	EndClient    = "client"    // the client closed it
	EndRequested = "requested" // the service ended it on request of the client
	EndInOrder   = "in order"  // the service ended it
	EndReset     = "reset"
)

// Last returns the latest stream of a client that had one.
func (c *Client) Last() *OpenSpan { return &c.Spans[len(c.Spans)-1] }

// Begin records that a stream was opened.
func (c *Client) Begin(s *Stream) {
	c.Open = s
	c.Spans = append(c.Spans, OpenSpan{From: time.Now()})
}
