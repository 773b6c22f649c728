package requests

import (
	"sync"
	"time"
)

// maxDials limits the concurrent dials, because a burst is not a test of the server's accept queue.
const maxDials = 250

// maxJointSize is the maximum number of bytes of a short request. The responses to short requests are read only after
// all short requests have been sent. Longer requests do not wait for each other, because the time to send them depends
// on the server.
const maxJointSize = 64 << 10

// A burstRequest is one request of a burst, on its own connection.
type burstRequest struct {
	lane *lane
	exchange
	err error // of the dial
}

func (s *stage) burst() {
	requests := make([]*burstRequest, s.tuple.ScaleInt64(s.requests))
	for i := range requests {
		requests[i] = &burstRequest{lane: s.newLane(), exchange: exchange{op: s.operations[i%len(s.operations)]}}
	}
	s.dialAll(requests)
	s.dialAll(requests) // the server may have closed the connections that were opened first
	s.sendAll(requests)
}

// dialAll opens a connection for each request that has no usable one. It skips requests whose dial has failed.
func (s *stage) dialAll(requests []*burstRequest) {
	var dials sync.WaitGroup
	slots := make(chan struct{}, maxDials)
	for _, r := range requests {
		if r.err != nil {
			continue
		}
		slots <- struct{}{}
		dials.Go(func() {
			defer func() { <-slots }()
			now := time.Now()
			if r.start.IsZero() {
				r.start = now
			}
			r.deadline = now.Add(s.timeout)
			if r.err = r.lane.connect(&r.exchange); r.err != nil {
				r.lane.finish(&r.exchange, r.err)
			}
		})
	}
	dials.Wait()
}

// sendAll sends all requests at the same time and records their outcomes.
func (s *stage) sendAll(requests []*burstRequest) {
	var start time.Time
	release := make(chan struct{})
	var ready, jointSends, senders sync.WaitGroup
	for _, r := range requests {
		isJoint := r.err == nil && len(r.op.bytes) <= maxJointSize
		ready.Add(1)
		if isJoint {
			jointSends.Add(1)
		}
		senders.Go(func() {
			ready.Done()
			<-release
			if r.err != nil {
				s.note(&r.exchange)
				return
			}
			r.start, r.deadline = time.Now(), start.Add(s.timeout)
			err := r.lane.send(&r.exchange)
			r.releasedAt, r.sentAt = start, time.Now()
			if isJoint {
				jointSends.Done()
				jointSends.Wait()
			}
			r.lane.finish(&r.exchange, r.lane.receive(&r.exchange, err))
			s.note(&r.exchange)
		})
	}
	ready.Wait()
	start = time.Now()
	close(release)
	senders.Wait()
}
