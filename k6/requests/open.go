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
	a := &arrivals{stage: s, index: lib.NewSegmentedIndex(tuple), maxLanes: n}
	a.passTurn(true)
	a.workers.Wait()
}

// An arrivals value distributes the requests of an open stage among its lanes, in the order of their intended starts.
// One free lane at a time has the turn: it waits until the next request is due, passes the turn on, and makes the
// request.
type arrivals struct {
	stage    *stage
	maxLanes int
	workers  sync.WaitGroup
	index    *lib.SegmentedIndex // used only by the lane that has the turn, as backlog
	backlog  bool                // all lanes were busy, and each request since then was late

	mu        sync.Mutex
	laneCount int
	idle      []chan struct{} // one per lane that waits for the turn; the last one gets it
	allBusy   bool            // no lane has the turn
}

type ticket struct {
	due      time.Time
	n        int64         // index in the load of all runners, from 0
	laneWait time.Duration // time until a lane was free
}

// next returns the next request when it is due, and drops the requests that did not start within their timeout. It
// returns false at the end of the stage. The caller has the turn.
func (a *arrivals) next() (t ticket, ok bool) {
	s, dropped := a.stage, int64(0)
	defer func() { s.drop(dropped) }()
	for s.ctx.Err() == nil {
		_, n := a.index.Next()
		after := time.Duration(min(float64(n-1)/s.rate, maxNumber) * float64(time.Second)) // min prevents an overflow
		if after >= s.duration {
			break
		}
		t = ticket{due: s.start.Add(after), n: n - 1}
		wait := time.Until(t.due)
		if wait <= -s.timeout {
			dropped++
			continue
		}
		if a.backlog = a.backlog && wait < 0; a.backlog {
			t.laneWait = -wait
		}
		sleep(s.ctx, wait)
		return t, s.ctx.Err() == nil
	}
	return t, false
}

// passTurn passes the turn to the lane that became idle last, or to a new lane if more requests follow. If all lanes are
// busy, the next free one takes the turn.
func (a *arrivals) passTurn(more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch last := len(a.idle) - 1; {
	case last >= 0:
		a.idle[last] <- struct{}{}
		a.idle = a.idle[:last]
	case more && a.laneCount < a.maxLanes:
		a.laneCount++
		a.workers.Go(a.work)
	default:
		a.allBusy = true
	}
}

// takeTurn waits for the turn on wake, unless all lanes were busy.
func (a *arrivals) takeTurn(wake chan struct{}) {
	a.mu.Lock()
	if a.allBusy {
		a.allBusy, a.backlog = false, true
		wake <- struct{}{}
	} else {
		a.idle = append(a.idle, wake)
	}
	a.mu.Unlock()
	<-wake
}

// work is the goroutine of a lane, which starts with the turn. It makes requests until there are no more.
func (a *arrivals) work() {
	s, l, wake := a.stage, a.stage.newLane(), make(chan struct{}, 1)
	for ; ; a.takeTurn(wake) {
		t, ok := a.next()
		a.passTurn(ok)
		if !ok {
			return
		}
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

// sleep waits for d, or until ctx ends. It is as precise as the system allows, because the delay of a late request
// would be attributed to the service.
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
