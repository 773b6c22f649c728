package sse

import (
	"errors"
	"net"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// read reads a parked stream to its end. It is all that an open connection runs: keep
// what it calls shallow, its stack is counted per connection.
func (s *source) read() {
	if blocks := s.facets().blocks; blocks != nil {
		s.readBlocks(blocks)
		return
	}
	var e eventstream.Event
	var at time.Time
	s.body.at = &at
	for {
		if err := s.parser.Next(&e); err != nil {
			s.finishStream(err)
			return
		}
		s.dispatch(at, &e)
	}
}

// readBlocks is read for an observer that sees every block.
//
//go:noinline // the other streams' stacks have no room for its frame
func (s *source) readBlocks(blocks BlockObserver) {
	var b eventstream.Block
	s.body.at = &b.At
	for {
		if err := s.nextOf(blocks, &b); err != nil {
			s.finishStream(err)
			return
		}
		s.dispatch(b.At, &b.Event)
	}
}

// nextOf is the parser's Next for an observer that sees every block, told on the way.
func (s *source) nextOf(blocks BlockObserver, b *eventstream.Block) error {
	for {
		part, err := s.parser.NextPart(b)
		switch {
		case err != nil:
			return err
		case part == eventstream.CommentLine:
			blocks.Comment(b.At, b.Comment)
			continue
		}
		blocks.Block(b.At, b)
		if b.HasData {
			return nil
		}
	}
}

// turn reads what has come on a polled stream, into a buffer and a block that are the
// poller's.
func (s *source) turn(buf []byte, b *eventstream.Block) {
	if s.attention.Load() && s.attend(buf, b) {
		return
	}
	s.readOn(buf, b)
}

// attend ends the stream where that is asked for, or cuts it, and says whether that was its turn.
func (s *source) attend(buf []byte, b *eventstream.Block) (over bool) {
	stopped, c := s.isStopped()
	if stopped {
		s.finishStream(net.ErrClosed)
		return true
	}
	return c != nil && (s.turnShared(c, buf, b) || s.turnCut(c, buf, b))
}

// readOn reads what has come. It returns false where the stream has ended.
func (s *source) readOn(buf []byte, b *eventstream.Block) bool {
	s.parser.Borrow(buf, b)
	s.body.at = &b.At
	blocks := s.facets().blocks
	for {
		var err error
		if blocks == nil {
			err = s.parser.Next(&b.Event)
		} else {
			err = s.nextOf(blocks, b)
		}
		switch err {
		case nil:
			s.dispatch(b.At, &b.Event)
		case errNotReady:
			s.parser.Return()
			return true
		default:
			s.finishStream(err)
			return false
		}
	}
}

// dispatch tells the observer and the client, and counts.
func (s *source) dispatch(at time.Time, e *eventstream.Event) {
	s.observer.Event(at, e)
	s.counter.add()
	if s.first {
		s.first = false
		s.countFirst(at)
	}
	if s.awaits {
		s.followFirst(e)
	}
	s.client.event(at, e)
}

// countFirst samples how long a stream took to its first event.
//
//go:noinline // or its sample is part of dispatch's frame: 300 bytes of the 2 KB that a stack has
func (s *source) countFirst(at time.Time) {
	s.hub.push(sample(s.hub.m.metrics.firstEvent, &s.counter.tags, at, metrics.D(at.Sub(processStart)-s.openedAt)))
}

// finishStream closes the connection and names what ended it.
func (s *source) finishStream(err error) {
	s.body.unwatch()
	how := s.letGo()
	if st, ok := s.body.wire.(*h2Stream); ok && errors.Is(err, errIdle) {
		st.conn.doubt()
	}
	s.body.wire.hangUp()
	s.body.end()
	s.parser.Release()
	if how != 0 {
		err = errCut
		if cuts := s.facets().cuts; cuts != nil { // else the script dropped it
			cuts.Cut(time.Now(), how)
		}
	}
	f := readFailure(err)
	f.status = 200
	if s.opts.rarely().then != nil {
		if f = s.endFollow(f); f == nil {
			return // the second request is under way: its goroutine goes on
		}
	}
	s.closed(nil, f)
}
