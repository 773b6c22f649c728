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

// A Noop is the record of one noop.
type Noop struct {
	Slot         int    // position in the schedule of the client, from 1
	Number       uint64 // from 1, without gaps, in the order in which noops are due; 0: unserved
	Due          time.Time
	At           time.Time // when it was last written; zero: never
	Copies       int       // how many times it was written
	Corrupt      bool
	Overtaken    bool // a later noop was written before it
	Unserved     bool // the service made no noop for this slot, and used no number
	Disconnected bool // the client was disconnected when the noop was due
	OtherEvent   bool // it had a different event name, so clients do not count it as a noop
}

// Lost reports whether the noop did not reach the client as a noop. cut is the time after which the proxy dropped
// all noops; zero: never.
func (n *Noop) Lost(cut time.Time) bool {
	return n.At.IsZero() || n.OtherEvent || !cut.IsZero() && n.At.After(cut)
}

// A NoopClient is the record of one client of a Service: its noops, and how its streams ended. The lock of the service
// guards it.
type NoopClient struct {
	Client
	First          time.Time // when slot 1 was due
	CutAt          time.Time // time after which the proxy dropped all noops; zero: never
	disconnectedAt time.Time // when the proxy disconnected the client
	Noops          []Noop
	numbers        uint64 // number of the last noop
}

func (c *NoopClient) add(n Noop) int {
	if !n.Unserved {
		c.numbers++
		n.Number = c.numbers
	}
	c.Noops = append(c.Noops, n)
	return len(c.Noops) - 1
}

func (c *NoopClient) cutAfter(noops int) {
	c.CutAt = c.Spans[0].From
	if noops > 0 {
		c.CutAt = c.Noops[noops-1].At
	}
}

func (c *NoopClient) markLost() {
	for i := range c.Noops {
		if n := &c.Noops[i]; n.Lost(c.CutAt) {
			n.At, n.Copies = time.Time{}, 0
		}
	}
	c.CutAt = time.Time{}
}

// isDisconnected reports whether the proxy disconnected the client's last stream. The service may not have noticed.
func (c *NoopClient) isDisconnected() bool { return c.disconnectedAt.After(c.Last().From) }

// EndedOnRequest reports whether the last stream was open when its end was requested. A request may also arrive after
// the client has disconnected, if a proxy has not reported the disconnect.
func (c *NoopClient) EndedOnRequest() bool {
	closedAt := c.Last().To
	return !c.isDisconnected() && !c.EndRequestedAt.IsZero() && (closedAt.IsZero() || c.EndRequestedAt.Before(closedAt))
}

// LastExpected returns the time after which no noop is expected. It returns zero if the last stream is open, no request
// has ended it, and the proxy has not disconnected it.
func (c *NoopClient) LastExpected() time.Time {
	closedAt := c.Last().To
	switch {
	case c.EndedOnRequest():
		return c.EndRequestedAt
	case c.isDisconnected() && (closedAt.IsZero() || c.disconnectedAt.Before(closedAt)):
		return c.disconnectedAt
	}
	return closedAt
}
