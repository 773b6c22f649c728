package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
	"github.com/sse-soak/sse-soak/k6/sse"
)

// holdOptions is the second argument of hold. soak-streams.d.ts documents it.
type holdOptions struct {
	// The streams, and the times at which they open and end.
	From      int       `js:"from"`
	To        int       `js:"to"`
	Streams   []int     `js:"streams"` // in place of From and To
	Prefix    string    `js:"prefix"`
	Delay     float64   `js:"delay"`     // ms before the first stream; only with Lifetimes
	Ramp      float64   `js:"ramp"`      // ms
	OpenFor   float64   `js:"openFor"`   // ms
	Lifetimes []float64 `js:"lifetimes"` // ms, in place of Ramp and OpenFor

	// The connection and the end of each stream.
	IdleTimeout          float64 `js:"idleTimeout"` // ms
	EndTimeout           float64 `js:"endTimeout"`  // s
	Reconnect            bool    `js:"reconnect"`
	AcceptEncoding       string  `js:"acceptEncoding"`
	HTTPVersion          string  `js:"httpVersion"`
	StreamsPerConnection uint16  `js:"streamsPerConnection"`
	FollowRedirects      bool    `js:"followRedirects"`
	Unchecked            bool    `js:"unchecked"`

	// Actions on the streams.
	Phases    []phase           `js:"phases"`
	Steps     []step            `js:"steps"` // in place of Ramp and OpenFor
	Broadcast *broadcastOptions `js:"broadcast"`
}

func (o *holdOptions) check() error {
	if o.From < 0 || o.To < o.From || o.To > math.MaxInt32 || !(o.OpenFor >= 0) || !(o.IdleTimeout >= 0) || !(o.EndTimeout > 0) {
		return fmt.Errorf("soak.hold: numbers must be from 0 to 2147483647, with from <= to and endTimeout > 0, got from %d, to %d, openFor %v, idleTimeout %v and endTimeout %v", o.From, o.To, o.OpenFor, o.IdleTimeout, o.EndTimeout)
	}
	if o.Lifetimes != nil && len(o.Lifetimes) != len(o.numbers()) {
		return fmt.Errorf("soak.hold: the length of lifetimes must be the number of streams, %d, got %d", len(o.numbers()), len(o.Lifetimes))
	}
	return checkPhases(o.Phases)
}

func (o *holdOptions) numbers() []int {
	if o.Streams != nil {
		return o.Streams
	}
	numbers := make([]int, 0, o.To-o.From)
	for n := o.From; n < o.To; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// A holding is a call of hold: a set of streams, from their connection attempts to their requested ends. An open stream
// has no JavaScript object and, on Linux, no goroutine.
type holding struct {
	holdOptions
	m              *module
	service        *jsService
	ctx            context.Context // of the iteration
	state          *lib.State
	group          *sse.Streams
	phaseGroup     *sse.Streams // the streams on which phases act; nil: none
	ender          ender
	broadcaster    *broadcaster // nil: none
	started        time.Time
	resolve        func() error
	reconnectMu    sync.Mutex     // guards the reconnections of the streams
	runningActions sync.WaitGroup // of the phases

	mu           sync.Mutex
	streams      []*holdStream
	timer        *time.Timer // for end; nil with lifetimes or steps
	phaseTimers  []*time.Timer
	open         int  // streams that have not ended, and running phases and steps
	unfinished   int  // streams whose checks are not recorded yet
	ending       bool // the ends of the streams are being requested
	endRequested bool // the end of each stream was requested
	finished     bool
}

// hold implements soak.hold(service, options). It opens streams, requests their ends and records their checks. Then the
// promise resolves. If the iteration is interrupted, hold records no further checks and the promise never resolves.
func (m *module) hold(serviceObject sobek.Value, options sobek.Value) *sobek.Promise {
	rt := m.vu.Runtime()
	h, err := m.newHolding(serviceObject, options)
	if err == nil {
		err = h.begin()
	}
	sse.Must(rt, err)
	promise, resolve, _ := rt.NewPromise()
	h.resolve = func() error { return resolve(sobek.Undefined()) }
	h.start()
	return promise
}

// newHolding returns a holding without streams, which begin creates.
func (m *module) newHolding(serviceObject, options sobek.Value) (*holding, error) {
	if m.vu.State() == nil {
		return nil, common.NewInitContextError("soak.hold opens streams; call it in the default function")
	}
	h := &holding{m: m, ctx: m.vu.Context(), state: m.vu.State()}
	if common.IsNullish(options) {
		return nil, errors.New("soak.hold: options are missing; set from, to and openFor")
	}
	if err := m.vu.Runtime().ExportTo(options, &h.holdOptions); err != nil {
		return nil, fmt.Errorf("soak.hold: %w", err)
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	if len(h.Phases) > 0 {
		m.recorder.gate.wait(h.ctx)
	}
	h.started = time.Now()
	if common.IsNullish(serviceObject) {
		h.service = m.recorder.defaultService(m)
	} else {
		h.service = m.compiled[serviceObject]
	}
	if h.service == nil {
		return nil, errors.New("soak.hold: service must be a result of soak.service, or null for noop")
	}
	if _, err := m.token(h.service.TokenVariable); err != nil {
		return nil, fmt.Errorf("soak.hold: %w", err)
	}
	if h.Broadcast != nil {
		h.broadcaster = newBroadcaster(h, *h.Broadcast)
	}
	return h, nil
}

// begin creates the streams. It runs on the event loop, because it may call the functions of the description.
func (h *holding) begin() (err error) {
	if err := h.m.beginRun(); err != nil {
		return err
	}
	if h.group, err = h.newStreams(false); err != nil {
		return fmt.Errorf("soak.hold: %w", err)
	}
	if len(h.Phases) > 0 {
		if h.phaseGroup, err = h.newStreams(true); err != nil {
			h.finish(nil)
			return fmt.Errorf("soak.hold: %w", err)
		}
	}
	h.ender = newEnder(h)
	if h.Steps != nil {
		return nil // the steps add their streams
	}
	if err = h.add(h.numbers()); err != nil {
		h.finish(nil)
	}
	return err
}

// finish calls resolve on the event loop, unless resolve is nil, and then allows the iteration to end. It must not be
// called while a stream is open.
func (h *holding) finish(resolve func() error) {
	if h.phaseGroup != nil {
		h.phaseGroup.OnEnd(func() error { return nil })
	}
	h.group.OnEnd(func() error {
		if resolve == nil {
			return nil
		}
		return resolve()
	})
}

// newStreams creates a set of streams: the streams on which phases act if phased is true, otherwise the other streams.
// It runs on the event loop.
func (h *holding) newStreams(phased bool) (*sse.Streams, error) {
	s := h.service
	o := sseclient.Options{
		ConnectTimeout: sseclient.DefaultConnectTimeout, FollowUpTimeout: sseclient.DefaultConnectTimeout, IdleTimeout: milli(h.IdleTimeout),
		ReconnectDelay: sseclient.DefaultReconnectDelay, FollowRedirects: h.FollowRedirects, MaxEventSize: s.MaxEventSize,
		Resume: sseclient.Resume{Off: !s.Resume.Resumes(), Query: s.Resume.Query}, Sharing: sseclient.Sharing{StreamsPerConnection: h.StreamsPerConnection},
	}
	reconnects := h.Reconnect
	if phased {
		o.Sharing.StreamsPerConnection = 1 // an action on a connection must not affect other streams
		reconnects = h.drops()
	}
	if reconnects {
		o.Reconnect = sseclient.ReconnectAlways
	}
	if err := setTransport(&o, h.AcceptEncoding, h.HTTPVersion); err != nil {
		return nil, err
	}
	return h.m.sse.Streams(s.Connect.Route(), s.Connect.Method, o, h.callbacks()), nil
}

// setTransport sets the options of a script for compression and HTTP. An empty acceptEncoding means "none", and an
// empty httpVersion means "auto".
func setTransport(o *sseclient.Options, acceptEncoding, httpVersion string) (err error) {
	if o.AcceptEncoding, err = coding.AcceptEncoding(cmp.Or(acceptEncoding, coding.NoneSetting)); err != nil {
		return fmt.Errorf("option acceptEncoding: %w", err)
	}
	if o.Sharing.Protocol, err = sseclient.ParseProtocol(cmp.Or(httpVersion, "auto")); err != nil {
		return fmt.Errorf("option httpVersion: %w", err)
	}
	return nil
}

func milli(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// start begins to open the streams. Their ends are requested after the steps, after their lifetimes, or after openFor.
// If all streams end before openFor is over, their ends are requested at once.
func (h *holding) start() {
	switch {
	case h.Steps != nil:
		h.open++ // for the steps
		go h.runSteps()
	case h.Lifetimes != nil:
		h.mu.Lock()
		h.ending = true // openByLifetime requests the ends
		h.mu.Unlock()
		go h.openByLifetime()
	default:
		h.mu.Lock()
		h.schedulePhases()
		h.timer = time.AfterFunc(time.Until(h.started.Add(milli(h.OpenFor))), h.end)
		h.mu.Unlock()
		go h.rampUp(h.streams, milli(h.Ramp))
	}
}

// rampUp opens streams one after the other, evenly over the ramp. If ramp is 0, it opens each stream as soon as the
// previous one may dial.
func (h *holding) rampUp(streams []*holdStream, ramp time.Duration) {
	start := time.Now()
	for i, s := range streams {
		if ramp > 0 {
			sleep(h.ctx, time.Until(start.Add(ramp*time.Duration(i)/time.Duration(len(streams)))))
		}
		s.stream.Open()
	}
}

// end requests the ends of all streams. Further calls have no effect.
func (h *holding) end() {
	h.mu.Lock()
	wasEnding := h.ending
	h.ending = true
	for _, timer := range h.phaseTimers {
		timer.Stop()
	}
	h.mu.Unlock()
	if wasEnding {
		return
	}
	h.runningActions.Wait()
	h.ender.run(h.streams)
	h.noteEndsRequested()
}

func (h *holding) noteEndsRequested() {
	h.mu.Lock()
	h.endRequested = true
	h.mu.Unlock()
	h.resolveIfDone()
}

// resolveIfDone allows the iteration to end when all ends are requested, all streams have ended and all checks are
// recorded. An interrupted iteration does not wait for the checks.
func (h *holding) resolveIfDone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	interrupted := h.ctx.Err() != nil
	if h.finished || !h.endRequested || h.open > 0 || h.unfinished > 0 && !interrupted {
		return
	}
	h.finished = true
	if interrupted {
		h.finish(nil)
		return
	}
	h.finish(h.resolve)
}

// finishStream counts a stream that has ended, and records its checks if its end was requested.
func (h *holding) finishStream(s *holdStream) {
	h.mu.Lock()
	s.finished = true
	endRequested := s.endRequested
	h.mu.Unlock()
	if s.phase != nil {
		close(s.phase.ended)
	}
	if endRequested {
		s.finish()
	}
	h.release()
}

// release decrements open. If open becomes 0 before openFor is over, release requests the ends of the streams at once.
func (h *holding) release() {
	h.mu.Lock()
	h.open--
	allEnded := h.open == 0 && !h.ending && h.timer != nil && h.timer.Stop()
	h.mu.Unlock()
	if allEnded {
		go h.end()
		return
	}
	h.resolveIfDone()
}
