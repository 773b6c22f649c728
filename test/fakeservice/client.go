package fakeservice

import "time"

// A Client is the record of the streams of one id.
type Client struct {
	ID             string
	EndRequestedAt time.Time // the first request for the end of a stream
	Spans          []OpenSpan
	Open           *Stream // nil: none is open
}

// An OpenSpan is a time in which a stream was open.
type OpenSpan struct {
	From, To  time.Time // to is zero while the stream is open
	EndReason string    // it ended
	Resumed   bool      // it continues the stream before, or would if the service had not reset the client's id
	WithID    bool      // its client named the last message that it had
	Reported  bool      // the client reported afterwards how much it had read
}

// How a stream ended.
const (
	EndClient    = "client"   // its client closed it
	EndRequested = "asked"    // by the service, because its client requested it
	EndInOrder   = "in order" // by the service
	EndReset     = "reset"
)

// Last returns the latest stream of a client that had one.
func (c *Client) Last() *OpenSpan { return &c.Spans[len(c.Spans)-1] }

// Begin records that a stream is open.
func (c *Client) Begin(s *Stream) {
	c.Open = s
	c.Spans = append(c.Spans, OpenSpan{From: time.Now()})
}
