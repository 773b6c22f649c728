package soak

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
	"github.com/sse-soak/sse-soak/k6/sse"
)

// A holdStream is one stream of a holding. To save memory, it builds its request for each attempt. It stores values of
// the request only if the description has functions or a second request.
type holdStream struct {
	sse.Meter
	holding      *holding
	stream       *sseclient.Stream
	observer     *observer
	overrides    *requestOverrides // nil: the number of the stream determines the request
	timer        *time.Timer       // closes the stream if it does not end in time
	phase        *phaseState       // nil: the stream has neither a phase nor a lifetime
	n            int32
	status       int16 // HTTP status of the request that ends the stream, 0 without a response, or statusNotSent
	endRequested bool  // guarded by the mu of the holding, like finished
	finished     bool
}

// requestOverrides holds the values of the placeholders in the requests of a stream, and the results of functions.
type requestOverrides struct {
	values      *service.Values // also for the second request
	url         string          // "": the URL of the description
	credentials *credentials
}

// A phaseState is the additional state of a stream with a phase or a lifetime.
type phaseState struct {
	headers      chan struct{} // closed when the stream opens for the first time
	ended        chan struct{} // closed when the stream has ended and does not reconnect
	phased       bool          // a phase acts on the stream
	reconnection *reconnection // nil: not dropped, or reconnected; guarded by reconnectMu of the holding
	closedAt     atomic.Int64  // Unix time in ns of the last end of a stream or an attempt
}

// add creates the streams with the given numbers. It runs on the event loop.
func (h *holding) add(numbers []int) error {
	streams := make([]*holdStream, 0, len(numbers))
	for _, n := range numbers {
		s, err := h.newStream(n)
		if err != nil {
			return err
		}
		streams = append(streams, s)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams = append(h.streams, streams...)
	h.open += len(streams)
	h.unfinished += len(streams)
	return nil
}

// newStream creates stream n. It runs on the event loop.
func (h *holding) newStream(n int) (*holdStream, error) {
	l, err := h.m.recorder.newLedger(fmt.Sprintf("%s%d", h.Prefix, n))
	if err != nil {
		return nil, err
	}
	s := &holdStream{holding: h, n: int32(n)} // #nosec G115 -- the number of a client
	phased := slices.ContainsFunc(h.Phases, func(p phase) bool { return p.actsOn(n) })
	if phased || h.Lifetimes != nil {
		s.phase = &phaseState{headers: make(chan struct{}), ended: make(chan struct{}), phased: phased}
	}
	o := h.m.observer(l, phased)
	s.observer = &o
	if h.broadcaster != nil {
		s.observer.listener = h.broadcaster.subscribe()
	}
	if service := h.service; service.hasFunctions() || service.SecondRequest != nil {
		if s.overrides, err = service.requestOverrides(n, l.ID()); err != nil {
			return nil, err
		}
		if service.hasFunctions() {
			s.observer.override = s.overrides.credentials
		}
	}
	first := s.request()
	if err := first.Check(); err != nil {
		return nil, fmt.Errorf("request stream %s: %w", l.ID(), err)
	}
	s.stream = s.group().Add(s)
	return s, nil
}

func (h *holding) callbacks() sseclient.Callbacks {
	streamOf := func(s *sseclient.Stream) *holdStream { return s.Value().(*holdStream) }
	callbacks := h.m.recorder.callbacks(func(s *sseclient.Stream) *observer { return streamOf(s).observer })
	callbacks.Request = func(s *sseclient.Stream) sseclient.Request { return streamOf(s).request() }
	callbacks.Ended = func(s *sseclient.Stream) { h.finishStream(streamOf(s)) }
	if h.service.hasFunctions() {
		callbacks.Renew = func(s *sseclient.Stream, proceed func(error)) { streamOf(s).renew(proceed) }
	}
	if h.service.SecondRequest != nil {
		callbacks.FollowUp = func(s *sseclient.Stream, e *eventstream.Event, f *sseclient.FollowUp) bool {
			request, err := h.service.secondRequestFor(e, streamOf(s).overrides.values)
			if request == nil && err == nil {
				return false
			}
			f.Send(request, err)
			return true
		}
	}
	opened, closed := callbacks.Opened, callbacks.Closed
	callbacks.Opened = func(s *sseclient.Stream, started time.Time, r *sseclient.Response) {
		opened(s, started, r)
		if hold := streamOf(s); hold.phase != nil {
			hold.opened(started, r.At)
		}
	}
	callbacks.Closed = func(s *sseclient.Stream, at time.Time, c sseclient.Close) {
		closed(s, at, c)
		if hold := streamOf(s); hold.phase != nil {
			hold.closed(at, c)
		}
	}
	return callbacks
}

func (s *holdStream) group() *sse.Streams {
	if s.isPhased() {
		return s.holding.phaseGroup
	}
	return s.holding.group
}

func (s *holdStream) isPhased() bool { return s.phase != nil && s.phase.phased }

// reconnects reports whether the client reconnects after the loss of its stream.
func (s *holdStream) reconnects() bool {
	if s.isPhased() {
		return s.holding.drops()
	}
	return s.holding.Reconnect
}

func (s *holdStream) ledger() *ledger.Ledger { return s.observer.ledger }

func (s *holdStream) request() sseclient.Request {
	h, id := s.holding, s.ledger().ID()
	if s.overrides == nil {
		v, _ := h.service.values(int(s.n), id) // newHolding has checked the token, and there are no functions
		return requestUsing(&h.service.Connect, v)
	}
	r := requestUsing(&h.service.Connect, s.overrides.values)
	if s.overrides.url != "" {
		r.URL = s.overrides.url
	}
	return r
}

// renew calls the functions of the description for the next attempt, on the event loop.
func (s *holdStream) renew(proceed func(error)) {
	s.group().Renew(s.stream, proceed, func() error {
		err := s.holding.service.renew(int(s.n), s.overrides)
		if err == nil {
			r := s.request()
			err = r.Check()
		}
		return err
	})
}

func (s *holdStream) close() { s.stream.Finish(sseclient.ReasonClient) }

// endRequest returns the request that ends the stream. It runs on the event loop if the description has functions.
func (s *holdStream) endRequest() (sseclient.Request, error) {
	h, id := s.holding, s.ledger().ID()
	v, err := h.service.values(int(s.n), id)
	return requestUsing(h.service.End.Request, v), err
}
