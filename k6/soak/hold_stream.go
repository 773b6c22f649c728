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

// A holdStream is one stream of a holding. To save memory, it builds its request for each attempt, and stores only the
// parts that JavaScript provides.
type holdStream struct {
	sse.Meter
	holding      *holding
	stream       *sseclient.Stream
	observer     *observer
	jsRequest    *requestOverrides // nil: its number determines the request
	timer        *time.Timer       // closes it if it does not end in time
	phase        *phaseState       // nil: it has neither a phase nor a lifetime
	n            int32
	status       int16 // of the request that ends it, 0 without a response, or notSent
	endRequested bool  // guarded by the mu of the holding, like finished
	finished     bool
}

// A requestOverrides has the parts of a request that JavaScript provides: token and URL.
type requestOverrides struct {
	values      *service.Values // also for the second request
	url         string          // "": the URL of the description
	credentials *credentials
}

// A phaseState is the additional state of a stream with a phase or a lifetime.
type phaseState struct {
	headers      chan struct{} // closed when the stream opens for the first time
	ended        chan struct{} // closed when the stream has ended and does not reconnect
	phased       bool          // a phase acts on it
	reconnection *reconnection // nil: it was not dropped, or has reconnected; guarded by reconnectMu of the holding
	closedAt     atomic.Int64  // Unix time in ns of the last end of a connection
}

// add creates the streams with the given numbers. It runs on the event loop.
func (h *holding) add(numbers []int) error {
	streams := make([]*holdStream, 0, len(numbers))
	for _, n := range numbers {
		s, err := h.newStream(n, len(h.streams)+len(streams))
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

// newStream creates stream n. index is its position in the holding. It runs on the event loop.
func (h *holding) newStream(n, index int) (*holdStream, error) {
	l, err := h.m.recorder.newLedger(fmt.Sprintf("%s%d", h.Prefix, n))
	if err != nil {
		return nil, err
	}
	s := &holdStream{holding: h, n: int32(n)} // #nosec G115 -- an index of connections
	phased := slices.ContainsFunc(h.Phases, func(p phase) bool { return p.actsOn(n) })
	if phased || h.Lifetimes != nil {
		s.phase = &phaseState{headers: make(chan struct{}), ended: make(chan struct{}), phased: phased}
	}
	o := h.m.observer(l, phased)
	s.observer = &o
	if h.broadcasts != nil {
		s.observer.listener = h.broadcasts.subscribe(index)
	}
	if service := h.service; service.hasFunctions() || service.SecondRequest != nil {
		if s.jsRequest, err = service.requestOverrides(n, l.ID()); err != nil {
			return nil, err
		}
		if service.hasFunctions() {
			s.observer.override = s.jsRequest.credentials
		}
	}
	first := s.request()
	if err := first.Check(); err != nil {
		return nil, fmt.Errorf("request stream %s: %w", l.ID(), err)
	}
	s.stream = s.group().Add(s)
	return s, nil
}

// callbacks returns the callbacks of the streams, whose values are holdStreams.
func (h *holding) callbacks() sseclient.Callbacks {
	of := func(s *sseclient.Stream) *holdStream { return s.Value().(*holdStream) }
	on := h.m.recorder.callbacks(func(s *sseclient.Stream) *observer { return of(s).observer })
	on.Request = func(s *sseclient.Stream) sseclient.Request { return of(s).request() }
	on.Ended = func(s *sseclient.Stream) { h.finishStream(of(s)) }
	if h.service.hasFunctions() {
		on.Renew = func(s *sseclient.Stream, proceed func(error)) { of(s).renew(proceed) }
	}
	if h.service.SecondRequest != nil {
		on.FollowUp = func(s *sseclient.Stream, e *eventstream.Event, f *sseclient.FollowUp) bool {
			request, err := h.service.secondRequestFor(e, of(s).jsRequest.values)
			if request == nil && err == nil {
				return false
			}
			f.Send(request, err)
			return true
		}
	}
	opened, closed := on.Opened, on.Closed
	on.Opened = func(s *sseclient.Stream, started time.Time, r *sseclient.Response) {
		opened(s, started, r)
		if hold := of(s); hold.phase != nil {
			hold.opened(started, r.At)
		}
	}
	on.Closed = func(s *sseclient.Stream, at time.Time, c sseclient.Close) {
		closed(s, at, c)
		if hold := of(s); hold.phase != nil {
			hold.closed(at, c)
		}
	}
	return on
}

// group returns the set of streams to which the stream belongs: those with or without phases.
func (s *holdStream) group() *sse.Streams {
	if s.isPhased() {
		return s.holding.phased
	}
	return s.holding.group
}

// isPhased reports whether a phase acts on the stream.
func (s *holdStream) isPhased() bool { return s.phase != nil && s.phase.phased }

// reconnects reports whether the client reconnects after the loss of its stream.
func (s *holdStream) reconnects() bool {
	if s.isPhased() {
		return s.holding.drops()
	}
	return s.holding.Reconnect
}

func (s *holdStream) ledger() *ledger.Ledger { return s.observer.ledger }

// request returns the request of the next attempt.
func (s *holdStream) request() sseclient.Request {
	h, id := s.holding, s.ledger().ID()
	if s.jsRequest == nil {
		v, _ := h.service.values(int(s.n), id) // newHolding has checked the token, and there are no functions
		return requestUsing(&h.service.Connect, v)
	}
	r := requestUsing(&h.service.Connect, s.jsRequest.values)
	if s.jsRequest.url != "" {
		r.URL = s.jsRequest.url
	}
	return r
}

// renew calls the functions of the description for the next attempt, on the event loop.
func (s *holdStream) renew(proceed func(error)) {
	s.group().Renew(s.stream, proceed, func() error {
		err := s.holding.service.renew(int(s.n), s.jsRequest)
		if err == nil {
			r := s.request()
			err = r.Check()
		}
		return err
	})
}

func (s *holdStream) close() { s.stream.Stop(sseclient.ReasonClient) }

// endRequest returns the request that ends the stream. It runs on the event loop if the description has functions.
func (s *holdStream) endRequest() (sseclient.Request, error) {
	h, id := s.holding, s.ledger().ID()
	v, err := h.service.values(int(s.n), id)
	return requestUsing(h.service.End.Request, v), err
}
