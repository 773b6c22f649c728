package soak

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/k6/sse"
)

// held is one stream of a holding. There are thousands: what it sends is made anew at each attempt, unless JS has a part in it.
type held struct {
	of       *holding
	stream   *sse.Stream
	observer *observer
	own      *ownRequest // nil: its number tells all
	timer    *time.Timer // closes it where it does not end in time
	n        int32
	status   int16 // of the request that ends it, 0 before it was answered, or notSent
	asked    bool  // its end was asked for; guarded by the holding's mu, as over
	over     bool
}

var _ sse.Keeper = (*held)(nil)

// ownRequest is what a stream sends that only JS knows: its token, its URL.
type ownRequest struct {
	values      *service.Values // of its second request, too
	url         string          // "": that of the description
	credentials *credentials
}

// add makes the stream of a number. On the event loop.
func (h *holding) add(n int) error {
	l, err := h.m.recorder.newLedger(fmt.Sprintf("%s%d", h.Prefix, n))
	if err != nil {
		return err
	}
	seen := h.m.observe(l, len(h.Phases) > 0)
	s := &held{of: h, n: int32(n), observer: seen.unwrap()} //nolint:gosec // G115: an index of connections
	var then sse.SecondRequester
	if service := h.service; service.hasFunctions() || service.Then != nil {
		if s.own, err = service.ownRequest(n, l.ID()); err != nil {
			return err
		}
		if service.hasFunctions() {
			s.observer.authorize(s.own.credentials)
		}
		if service.Then != nil {
			then = &secondRequest{service: service.Service, values: s.own.values}
		}
	}
	first := s.Request()
	if err := first.Check(); err != nil {
		return fmt.Errorf("stream %s cannot be asked for: %w", l.ID(), err)
	}
	s.stream = h.group.Add(seen, s, then)
	h.streams = append(h.streams, s)
	return nil
}

func (s *held) ledger() *ledger.Ledger { return s.observer.ledger }

// Request is what the next attempt sends.
func (s *held) Request() sse.Request {
	h, id := s.of, s.ledger().ID()
	if s.own == nil {
		v, _ := h.service.values(int(s.n), id) // hold has checked the token, and there are no functions
		return requestBy(&h.service.Connect, v)
	}
	r := requestBy(&h.service.Connect, s.own.values)
	if s.own.url != "" {
		r.URL = s.own.url
	}
	return r
}

// renew asks the description for what the next attempt sends. On the event loop.
func (s *held) renew() error {
	err := s.of.service.renew(int(s.n), s.own)
	if err == nil {
		r := s.Request()
		err = r.Check()
	}
	return err
}

// Ended is the end of the stream for good.
func (s *held) Ended() { s.of.ended(s) }

// endRequest is what asks for its end. On the event loop where the description has functions.
func (s *held) endRequest() (sse.Request, error) {
	h, id := s.of, s.ledger().ID()
	v, err := h.service.values(int(s.n), id)
	return requestBy(h.service.End.Request, v), err
}
