package sseclient

import (
	"errors"
	"net"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// read reads a stream to its end. It is the goroutine of a stream without a poller.
func (s *Stream) read() {
	var b eventstream.Block
	s.body.arrival = &b.At
	for {
		if err := s.next(&b); err != nil {
			s.finishStream(err)
			return
		}
		s.dispatch(b.At, &b.Event)
	}
}

// next reads up to the next event. If the callback Block is set, it also reports the blocks and comments up to there.
func (s *Stream) next(b *eventstream.Block) error {
	if s.callbacks.Block == nil {
		return s.parser.Next(&b.Event)
	}
	for {
		part, err := s.parser.NextPart(b)
		switch {
		case err != nil:
			return err
		case part == eventstream.CommentLine:
			report(s, s.callbacks.Comment, b.At, b.Comment)
			continue
		}
		report(s, s.callbacks.Block, b.At, b)
		if b.HasData {
			return nil
		}
	}
}

// turn ends or cuts the stream if requested, or else reads the bytes that have arrived, with the caller's buffers.
func (s *Stream) turn(buf []byte, b *eventstream.Block) {
	if s.attention.Load() && s.attend(buf, b) {
		return
	}
	s.readStream(buf, b)
}

// attend ends or cuts the stream if requested. done reports whether the turn is over.
func (s *Stream) attend(buf []byte, b *eventstream.Block) (done bool) {
	stopped, c := s.isStopped()
	if stopped {
		s.finishStream(net.ErrClosed)
		return true
	}
	return c != nil && (s.turnShared(c, buf, b) || s.turnCut(c, buf, b))
}

// readStream reports the events that have arrived. It returns false if the stream has ended.
func (s *Stream) readStream(buf []byte, b *eventstream.Block) bool {
	s.parser.Borrow(buf, b)
	s.body.arrival = &b.At
	for {
		switch err := s.next(b); err {
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

func (s *Stream) dispatch(at time.Time, e *eventstream.Event) {
	report(s, s.callbacks.Event, at, e)
	if s.awaitsEvent {
		s.offerEvent(e)
	}
}

// finishStream closes the connection or makes it idle, and reports err as the reason.
func (s *Stream) finishStream(err error) {
	s.body.unwatch()
	kind := s.release()
	if st, ok := s.body.transport.(*h2Stream); ok && errors.Is(err, errIdle) {
		st.conn.suspect()
	}
	if kind != 0 || !s.makeConnectionIdle(err) {
		s.body.transport.hangUp()
	}
	s.body.end()
	s.parser.Release()
	if kind != 0 {
		err = errCut
		if s.cuttable { // otherwise Drop made the cut
			report(s, s.callbacks.Cut, time.Now(), kind)
		}
	}
	f := readFailure(err)
	if s.callbacks.FollowUp != nil {
		if f = s.endFollowUp(f); f == nil {
			return // the goroutine of the second request reports the end
		}
	}
	s.closed(nil, f)
}
