package requests

import (
	"context"
	"sync"
	"time"

	"go.k6.io/k6/v2/lib"
)

// open makes requests at a constant rate, even if the service is slower. The duration of each counts from its intended
// start, so a wait for a free lane is part of it. A request that gets no lane within its timeout is never made.
func (s *stage) open() {
	n, tuple := s.share()
	if n == 0 {
		return
	}
	a := &arrivals{stage: s, index: lib.NewSegmentedIndex(tuple), maxLanes: n, freeLane: make(chan struct{}, 1)}
	a.advance()
	a.pace()
	a.workers.Wait()
}

// An arrivals value distributes the requests of an open stage among its lanes, in the order of their intended starts.
type arrivals struct {
	stage    *stage
	maxLanes int
	freeLane chan struct{}

	mu        sync.Mutex
	index     *lib.SegmentedIndex
	next      ticket
	finished  bool // next is not due before the end of the stage, or the stage was interrupted
	laneCount int
	idle      []chan ticket // one per idle lane, which waits for a ticket
	workers   sync.WaitGroup
}

type ticket struct {
	due      time.Time
	n        int64         // index in the load of all runners, from 0
	laneWait time.Duration // time until a lane was free
}

func (a *arrivals) advance() {
	_, n := a.index.Next()
	after := time.Duration(min(float64(n-1)/a.stage.rate, maxNumber) * float64(time.Second)) // min prevents an overflow
	a.next = ticket{due: a.stage.start.Add(after), n: n - 1}
	a.finished = after >= a.stage.duration
}

// expire drops the requests that did not start within their timeout.
func (a *arrivals) expire(now time.Time) {
	var dropped int64
	for !a.finished && now.Sub(a.next.due) >= a.stage.timeout {
		dropped++
		a.advance()
	}
	a.stage.drop(dropped)
}

// pace assigns the requests to lanes as they become due, until no request remains or the stage is interrupted.
func (a *arrivals) pace() {
	for {
		wait, allBusy := a.assign()
		switch {
		case a.stage.ctx.Err() != nil || wait < 0:
			a.stopLanes()
			return
		case allBusy: // a lane that becomes free takes the next request itself
			timer := time.NewTimer(wait)
			select {
			case <-a.freeLane:
			case <-timer.C:
			case <-a.stage.ctx.Done():
			}
			timer.Stop()
		default:
			sleep(a.stage.ctx, wait)
		}
	}
}

// assign assigns the requests that are due, and returns the time until the next one is due; negative if no request
// remains. allBusy reports whether a request is due and no lane is free. If so, wait is the time until that request
// expires.
func (a *arrivals) assign() (wait time.Duration, allBusy bool) {
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
		case a.laneCount < a.maxLanes:
			a.laneCount++
			first := a.next
			a.workers.Go(func() { a.work(first) })
		default:
			return a.next.due.Add(a.stage.timeout).Sub(now), true
		}
		a.advance()
	}
}

// nextTicket returns the next request for a free lane. If no request is due, it waits on wake. It returns false at the
// end of the stage.
func (a *arrivals) nextTicket(wake chan ticket) (ticket, bool) {
	a.mu.Lock()
	now := time.Now()
	a.expire(now)
	t := a.next
	switch {
	case a.finished:
		a.mu.Unlock()
		a.signalFree()
		return t, false
	case !t.due.After(now):
		if a.laneCount == a.maxLanes && len(a.idle) == 0 { // otherwise a lane was free, but pace was late
			t.laneWait = now.Sub(t.due)
		}
		a.advance()
		a.mu.Unlock()
		return t, true
	}
	a.idle = append(a.idle, wake)
	a.mu.Unlock()
	a.signalFree()
	t, ok := <-wake
	return t, ok
}

func (a *arrivals) signalFree() {
	select {
	case a.freeLane <- struct{}{}:
	default:
	}
}

// stopLanes stops the idle lanes, and makes the other lanes stop after their current request.
func (a *arrivals) stopLanes() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finished = true
	for _, wake := range a.idle {
		close(wake)
	}
	a.idle = nil
}

// work is the goroutine of a lane: it makes requests until there are no more.
func (a *arrivals) work(t ticket) {
	s, l, wake := a.stage, a.stage.newLane(), make(chan ticket, 1)
	for ok := true; ok && s.ctx.Err() == nil; t, ok = a.nextTicket(wake) {
		if !s.awaitRPS(t.due.Add(s.timeout)) {
			s.drop(1)
			continue
		}
		x := l.do(s.operations[t.n%int64(len(s.operations))], t.due, time.Now().Add(s.timeout))
		x.laneWait = t.laneWait
		s.note(&x)
	}
}

// timerLateness is the maximum lateness of a timer. Go's runtime waits in whole milliseconds.
const timerLateness = 2 * time.Millisecond

// sleep waits for d, or until ctx ends; a signal may end it early. It is as precise as the system allows, because the
// delay of a late request would be attributed to the service.
func sleep(ctx context.Context, d time.Duration) {
	end := time.Now().Add(d)
	if d > timerLateness {
		timer := time.NewTimer(d - timerLateness)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
	if remaining := time.Until(end); remaining > 0 {
		nap(remaining)
	}
}
