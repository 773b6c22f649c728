package soak

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/k6/sse"
)

// holdOptions are the second argument of hold; soak.d.ts documents them.
type holdOptions struct {
	From            int     `js:"from"`
	To              int     `js:"to"`
	OpenFor         float64 `js:"openFor"`     // ms
	IdleTimeout     float64 `js:"idleTimeout"` // ms
	EndTimeout      float64 `js:"endTimeout"`  // s
	Reconnect       bool    `js:"reconnect"`
	Prefix          string  `js:"prefix"`
	Accept          string  `js:"acceptEncoding"`
	HTTPVersion     string  `js:"httpVersion"`
	Per             uint16  `js:"streamsPerConnection"`
	FollowRedirects bool    `js:"followRedirects"`
	Streams         []int   `js:"streams"` // in place of From and To
	Ramp            float64 `js:"ramp"`    // ms
	Unchecked       bool    `js:"unchecked"`
	Phases          []phase `js:"phases"`
}

// A holding is a call of hold: some streams, from the connect to the end that was asked for. While they are open it has no
// goroutine, and nothing of JS.
type holding struct {
	holdOptions
	m       *module
	service *jsService
	ctx     context.Context // of the iteration
	state   *lib.State
	group   *sse.Streams
	ender   ender
	begun   time.Time
	resolve func() error
	returns returns

	mu          sync.Mutex
	streams     []*held
	timer       *time.Timer // until the ends are asked for
	phaseTimers []*time.Timer
	open        int // streams that have not ended, and phases that act
	unfinished  int // streams whose checks are not made
	ending      bool
	asked       bool // the end of each stream was asked for
	over        bool
}

// hold is soak.hold(service, options): it opens streams, holds them, asks for their end and makes their checks. The promise
// resolves when that is done for all of them; of an iteration that is interrupted it never does, as no check is made.
func (m *module) hold(described sobek.Value, options sobek.Value) *sobek.Promise {
	rt := m.vu.Runtime()
	h, err := m.newHolding(described, options)
	if err == nil {
		err = h.begin()
	}
	if err != nil {
		common.Throw(rt, err)
	}
	promise, resolve, _ := rt.NewPromise()
	h.resolve = func() error { return resolve(sobek.Undefined()) }
	h.start()
	return promise
}

func (m *module) newHolding(described, options sobek.Value) (*holding, error) {
	if m.vu.State() == nil {
		return nil, common.NewInitContextError("soak.hold opens streams: call it in the default function")
	}
	h := &holding{m: m, ctx: m.vu.Context(), state: m.vu.State(), begun: time.Now()}
	if common.IsNullish(options) {
		return nil, errors.New("soak.hold(service, options) needs options: from and to, which streams it holds, and openFor")
	}
	if err := m.vu.Runtime().ExportTo(options, &h.holdOptions); err != nil {
		return nil, fmt.Errorf("soak.hold: %w", err)
	}
	if h.From < 0 || h.To < h.From || h.To > math.MaxInt32 || !(h.OpenFor >= 0) || !(h.IdleTimeout >= 0) || !(h.EndTimeout > 0) {
		return nil, fmt.Errorf("soak.hold: the streams from %d to %d, open for %v ms, with an idleTimeout of %v ms and an endTimeout of %v s: no number may be below 0 or over 2147483647, and endTimeout not 0", h.From, h.To, h.OpenFor, h.IdleTimeout, h.EndTimeout)
	}
	if err := checkPhases(h.Phases); err != nil {
		return nil, err
	}
	if common.IsNullish(described) {
		h.service = m.recorder.undeclared(m)
	} else {
		h.service = m.compiled[described]
	}
	if h.service == nil {
		return nil, errors.New("soak.hold: the service must be one that soak.service returned, or null for noop")
	}
	if _, err := m.token(h.service.TokenVariable); err != nil {
		return nil, fmt.Errorf("soak.hold: %w", err)
	}
	return h, nil
}

// begin makes the streams, on the event loop: there a description may call JS for each of them.
func (h *holding) begin() error {
	if err := h.m.beginRun(); err != nil {
		return err
	}
	var err error
	if h.group, err = h.m.opener.Streams(h.streamsOptions()); err != nil {
		return fmt.Errorf("soak.hold: %w", err)
	}
	numbers := h.Streams
	for n := h.From; n < h.To; n++ {
		numbers = append(numbers, n)
	}
	h.streams = make([]*held, 0, len(numbers))
	for _, n := range numbers {
		if err := h.add(n); err != nil {
			h.group.Over(func() error { return nil })
			return err
		}
	}
	h.open, h.unfinished = len(h.streams), len(h.streams)
	h.ender = newEnder(h)
	return nil
}

func (h *holding) streamsOptions() sse.StreamsOptions {
	s := h.service
	o := sse.StreamsOptions{Name: s.Connect.Route(), Method: s.Connect.Method, MaxEventSize: s.MaxEventSize, NoResume: !s.Resume.Resumes(), ResumeQuery: s.Resume.Query, IdleTimeout: milli(h.IdleTimeout), Reconnect: h.Reconnect, AcceptEncoding: h.Accept, HTTP: h.HTTPVersion, PerConnection: h.Per, FollowRedirects: h.FollowRedirects}
	if s.hasFunctions() {
		o.Renew = func(k sse.Keeper) error { return k.(*held).renew() } //nolint:forcetypeassert // there are no others
	}
	if len(h.Phases) > 0 {
		o.PerConnection = 1 // an action on a connection must not affect other streams
	}
	if h.drops() {
		o.Opened = func(k sse.Keeper, begun, at time.Time) { k.(*held).opened(begun, at) }   //nolint:forcetypeassert // see Renew
		o.Closed = func(k sse.Keeper, at time.Time, c sse.Close) { k.(*held).closed(at, c) } //nolint:forcetypeassert // see Renew
	}
	return o
}

func milli(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// start opens the streams one after the other, evenly over the ramp, and has their ends asked for when their time is over, or
// when all have ended.
func (h *holding) start() {
	h.mu.Lock()
	h.schedulePhases()
	h.timer = time.AfterFunc(time.Until(h.begun.Add(milli(h.OpenFor))), h.end)
	h.mu.Unlock()
	go func() {
		for i, s := range h.streams {
			if h.Ramp > 0 {
				sleep(h.ctx, time.Until(h.begun.Add(milli(h.Ramp*float64(i)/float64(len(h.streams))))))
			}
			s.stream.Open()
		}
	}()
}

// end asks for the end of all streams, once.
func (h *holding) end() {
	h.mu.Lock()
	again := h.ending
	h.ending = true
	for _, timer := range h.phaseTimers {
		timer.Stop()
	}
	h.mu.Unlock()
	if again {
		return
	}
	h.ender.run(h.streams)
	h.mu.Lock()
	h.asked = true
	h.mu.Unlock()
	h.settle()
}

// settle lets the iteration end, once all is done.
func (h *holding) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	interrupted := h.ctx.Err() != nil
	if h.over || !h.asked || h.open > 0 || h.unfinished > 0 && !interrupted {
		return
	}
	h.over = true
	h.group.Over(func() error {
		if interrupted {
			return nil
		}
		return h.resolve()
	})
}

// ended counts a stream that is over, for whatever reason.
func (h *holding) ended(s *held) {
	h.mu.Lock()
	s.over = true
	finished := s.asked
	h.mu.Unlock()
	if finished {
		s.finish()
	}
	h.release()
}

// release counts a stream or a phase out. After the last one the ends are asked for early.
func (h *holding) release() {
	h.mu.Lock()
	h.open--
	early := h.open == 0 && !h.ending && h.timer.Stop()
	h.mu.Unlock()
	if early {
		go h.end()
		return
	}
	h.settle()
}
