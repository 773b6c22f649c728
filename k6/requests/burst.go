package requests

import (
	"sync"
	"time"

	"go.k6.io/k6/v2/metrics"
)

// dialing bounds how many connections are opened at a time: the server's queue of connections is not what a burst tests.
const dialing = 250

// mostAtOnce is the size in bytes up to which a request is written in one call. A longer one takes as long as the
// server needs to read it.
const mostAtOnce = 64 << 10

// burst opens a connection for each request first. Then all of them are sent, and only when the last one is on the wire is the
// first answer read; to a request that goes out at once. Longer ones wait for no other.
func (s *stage) burst() {
	n := int(s.tuple.ScaleInt64(s.requests))
	lanes, exchanges, errs := make([]*lane, n), make([]exchange, n), make([]error, n)
	forEach := func(atATime int, do func(i int)) {
		var working sync.WaitGroup
		turns := make(chan struct{}, max(atATime, 1))
		for i := range n {
			turns <- struct{}{}
			working.Go(func() {
				defer func() { <-turns }()
				do(i)
			})
		}
		working.Wait()
	}
	forEach(dialing, func(i int) {
		lanes[i] = s.newLane()
		now := time.Now()
		exchanges[i] = exchange{op: s.operations[i%len(s.operations)], from: now, deadline: now.Add(s.timeout)}
		if errs[i] = lanes[i].connect(&exchanges[i]); errs[i] != nil {
			lanes[i].finish(&exchanges[i], errs[i])
		}
	})
	forEach(dialing, func(i int) { // what opened first may have been closed since
		if errs[i] != nil {
			return
		}
		exchanges[i].deadline = time.Now().Add(s.timeout)
		if errs[i] = lanes[i].connect(&exchanges[i]); errs[i] != nil {
			lanes[i].finish(&exchanges[i], errs[i])
		}
	})
	release, released := make(chan struct{}), time.Time{}
	var ready, onTheWire, working sync.WaitGroup
	for i := range n {
		waits := errs[i] == nil && len(exchanges[i].op.sent) <= mostAtOnce
		ready.Add(1)
		if waits {
			onTheWire.Add(1)
		}
		working.Go(func() {
			l, x := lanes[i], &exchanges[i]
			ready.Done()
			<-release
			if errs[i] != nil {
				s.note(x)
				return
			}
			x.from, x.deadline = time.Now(), released.Add(s.timeout)
			err := l.send(x)
			sent := time.Now()
			if waits {
				onTheWire.Done()
				onTheWire.Wait()
			}
			l.finish(x, l.receive(x, err))
			more := []metrics.Sample{s.sample(s.m.metrics.sentAfter, sent, metrics.D(sent.Sub(released)))}
			if inHand, known := s.inHand(x); known {
				more = append(more, inHand)
			}
			s.note(x, more...)
		})
	}
	ready.Wait()
	released = time.Now()
	close(release)
	working.Wait()
}
