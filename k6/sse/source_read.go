package sse

import (
	"net"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// read reads a parked stream to its end. It is all that an open connection runs: keep
// what it calls shallow, its stack is counted per connection.
func (s *source) read() {
	var e eventstream.Event
	for {
		if err := s.parser.Next(&e); err != nil {
			s.finishStream(err)
			return
		}
		s.dispatch(s.body.at, &e)
	}
}

// turn reads what has come on a polled stream, into a buffer and an event that are the
// poller's.
func (s *source) turn(buf []byte, e *eventstream.Event) {
	if s.isStopped() {
		s.finishStream(net.ErrClosed)
		return
	}
	s.parser.Borrow(buf)
	for {
		switch err := s.parser.Next(e); err {
		case nil:
			s.dispatch(s.body.at, e)
		case errNotReady:
			s.parser.Borrow(nil)
			return
		default:
			s.finishStream(err)
			return
		}
	}
}

// dispatch tells the ledger, counts, and queues a task only where JS listens.
func (s *source) dispatch(at time.Time, e *eventstream.Event) {
	s.opts.ledger.Event(at, e)
	s.counter.add()
	if s.first {
		s.first = false
		s.countFirst(at)
	}
	switch {
	case s.listeners.want(e.Name):
		s.queueMessage(s.post, at, e)
	case s.pending.Load() > 0:
		// A task on its way may add a listener, as a script does that sets onmessage
		// right after the constructor or in onopen.
		s.queueMessage(s.hub.post, at, e)
	}
}

// countFirst samples how long a stream took to its first event.
//
//go:noinline // or its sample is part of dispatch's frame: 300 bytes of the 2 KB that a stack has
func (s *source) countFirst(at time.Time) {
	s.hub.push(sample(s.hub.m.metrics.firstEvent, &s.openTags, at, metrics.D(at.Sub(s.openedAt))))
}

// finishStream closes the connection and names what ended it.
func (s *source) finishStream(err error) {
	s.body.unwatch()
	s.body.wire.hangUp()
	s.body = body{}
	s.parser.Release()
	f := readFailure(err)
	f.status = 200
	s.closed(nil, f)
}
