package fakeservice

import "time"

// A Client is the record of the streams of one client id.
type Client struct {
	ID             string
	EndRequestedAt time.Time // time of the first request to end a stream
	Spans          []OpenSpan
	Open           *Stream // nil: none is open
}

// An OpenSpan is the time span in which a stream was open.
type OpenSpan struct {
	From, To  time.Time // To is zero while the stream is open
	EndReason string    // how the stream ended; "" while it is open
	Resumed   bool      // it continues the previous stream, or would if the service had not reset the client's id
	WithID    bool      // its client sent the id of the last message that it received
	Reported  bool      // when it reconnected, the client reported how much it had read
}

// How a stream ended.
const (
	EndClient    = "client"   // the client closed it
	EndRequested = "asked"    // the service ended it, because the client requested that
	EndInOrder   = "in order" // the service ended it
	EndReset     = "reset"
)

// Last returns the latest stream of a client that had one.
func (c *Client) Last() *OpenSpan { return &c.Spans[len(c.Spans)-1] }

// Begin records that a stream was opened.
func (c *Client) Begin(s *Stream) {
	c.Open = s
	c.Spans = append(c.Spans, OpenSpan{From: time.Now()})
}
