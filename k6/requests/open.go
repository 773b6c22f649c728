package requests

import (
	"context"
	"sync"
	"time"

	"go.k6.io/k6/v2/lib"
)

// open makes requests at a constant rate, whether the service keeps up or not. The time of each counts from its
// intended start: a wait for a free lane is part of it. A request that gets no lane within its timeout is never made.
func (s *stage) open() {
	n, tuple := s.share(s.concurrency)
	if n == 0 {
		return
	}
	a := &arrivals{stage: s, index: lib.NewSegmentedIndex(tuple), lanes: n, freed: make(chan struct{}, 1)}
	a.advance()
	a.pace()
	a.working.Wait()
}

// arrivals deals the requests of an open stage to its lanes, in the order of their intended starts.
type arrivals struct {
	stage *stage
	lanes int // at most
	freed chan struct{}

	mu       sync.Mutex
	index    *lib.SegmentedIndex
	next     ticket
	finished bool // next is beyond the stage
	started  int  // lanes
	idle     []chan ticket
	working  sync.WaitGroup
}

// A ticket is a request that is to be made.
type ticket struct {
	due    time.Time
	n      int64         // of the whole load, from 0
	waited time.Duration // until a lane was free
}

// advance moves to the next arrival of this runner.
func (a *arrivals) advance() {
	_, n := a.index.Next()
	after := time.Duration(float64(n-1) / a.stage.rate * float64(time.Second))
	a.next = ticket{due: a.stage.began.Add(after), n: n - 1}
	a.finished = after >= a.stage.length
}

// expire passes by what could not be begun within its time.
func (a *arrivals) expire(now time.Time) {
	var dropped int64
	for !a.finished && now.Sub(a.next.due) >= a.stage.timeout {
		dropped++
		a.advance()
	}
	a.stage.drop(dropped)
}

// pace wakes or starts a lane for each request when it is due, until the last one is dealt.
func (a *arrivals) pace() {
	for {
		wait, full := a.deal()
		switch {
		case a.stage.ctx.Err() != nil || wait < 0:
			a.dismiss()
			return
		case full: // a lane that gets free helps itself
			timer := time.NewTimer(wait)
			select {
			case <-a.freed:
			case <-timer.C:
			case <-a.stage.ctx.Done():
			}
			timer.Stop()
		default:
			sleep(a.stage.ctx, wait)
		}
	}
}

// deal starts what is due, and returns how long until there is more to do: under 0 for never again. full reports that
// no lane is free.
func (a *arrivals) deal() (wait time.Duration, full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		now := time.Now()
		a.expire(now)
		switch last := len(a.idle) - 1; {
		case a.finished:
			return -1, false
		case a.next.due.After(now):
			return a.next.due.Sub(now), false
		case last >= 0:
			a.idle[last] <- a.next
			a.idle = a.idle[:last]
		case a.started < a.lanes:
			a.started++
			first := a.next
			a.working.Go(func() { a.work(first) })
		default:
			return a.next.due.Add(a.stage.timeout).Sub(now), true
		}
		a.advance()
	}
}

// take returns the next request for a free lane: one that is due, or the one for which the lane is woken. It returns
// false if there is none.
func (a *arrivals) take(wake chan ticket) (ticket, bool) {
	a.mu.Lock()
	now := time.Now()
	a.expire(now)
	t := a.next
	switch {
	case a.finished:
		a.mu.Unlock()
		a.tell()
		return t, false
	case !t.due.After(now):
		if a.started == a.lanes && len(a.idle) == 0 { // else pace is late
			t.waited = now.Sub(t.due)
		}
		a.advance()
		a.mu.Unlock()
		return t, true
	}
	a.idle = append(a.idle, wake)
	a.mu.Unlock()
	a.tell()
	t, ok := <-wake
	return t, ok
}

// tell wakes pace where it waits for a lane.
func (a *arrivals) tell() {
	select {
	case a.freed <- struct{}{}:
	default:
	}
}

// dismiss ends the idle lanes, and when ctx is done also the others.
func (a *arrivals) dismiss() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finished = true
	for _, wake := range a.idle {
		close(wake)
	}
	a.idle = nil
}

// allowedBy waits for k6's --rps until an instant.
func (s *stage) allowedBy(end time.Time) bool {
	if s.state.RPSLimit == nil {
		return true
	}
	ctx, cancel := context.WithDeadline(s.ctx, end)
	defer cancel()
	return s.allowed(ctx)
}

// work makes requests until none is left.
func (a *arrivals) work(t ticket) {
	s, l, wake := a.stage, a.stage.newLane(), make(chan ticket, 1)
	for ok := true; ok && s.ctx.Err() == nil; t, ok = a.take(wake) {
		if !s.allowedBy(t.due.Add(s.timeout)) {
			s.drop(1)
			continue
		}
		x := l.do(s.operations[t.n%int64(len(s.operations))], t.due, time.Now().Add(s.timeout))
		x.waited = t.waited
		s.note(&x)
	}
}
