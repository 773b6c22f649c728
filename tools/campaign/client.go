package main

import "time"

// A client is what happened to the streams of one id.
type client struct {
	id      string
	asked   time.Time // the first request for the end of a stream
	spans   []openSpan
	present *stream // nil: none is open
}

// An openSpan is a time in which a stream was open.
type openSpan struct {
	from, to time.Time // to is zero while the stream is open
	how      string    // it ended
	resumed  bool      // it continues the stream before, or would if the service had not reset the client's id
	withID   bool      // its client named the last message that it had
	known    bool      // the client reported afterwards what it had read of it
}

// How a stream ended.
const (
	endClient  = "client"   // its client closed it
	endAsked   = "asked"    // by the service, because its client requested it
	endInOrder = "in order" // by the service
	endReset   = "reset"
)

// last is the latest stream of a client that had one.
func (c *client) last() *openSpan { return &c.spans[len(c.spans)-1] }

// begin records that a stream is open.
func (c *client) begin(s *stream) {
	c.present = s
	c.spans = append(c.spans, openSpan{from: time.Now()})
}
