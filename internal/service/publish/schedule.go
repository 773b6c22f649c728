package publish

import (
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// minSleep is the shortest sleep of schedule, so that at 10,000 messages per second each wake-up queues several.
const minSleep = 500 * time.Microsecond

// schedule queues each message when it is due, until all are queued or the publisher is stopped.
func (p *Publisher) schedule() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next := uint64(0); next < p.planned; {
		select {
		case <-timer.C:
		case <-p.quit:
			return
		case <-p.ctx.Done():
			return
		}
		now := p.now()
		p.mu.Lock()
		for ; next < p.planned && p.log.Due(next) <= now; next++ {
			p.queue(int(next % uint64(len(p.topics)))) // #nosec G115 -- below the number of topics
		}
		p.mu.Unlock()
		if next < p.planned {
			timer.Reset(max(minSleep, time.Duration(p.log.Due(next)-p.now())*time.Microsecond))
		}
	}
}

// queue records that one more message of a topic is due. It enqueues the message, unless the message must wait for the
// response to an earlier one. The caller holds mu.
func (p *Publisher) queue(topic int) {
	q := &p.topics[topic]
	q.due++
	if p.c.Service.Message.AnyOrder || !q.busy {
		q.busy = true
		p.enqueue(topic)
	}
}

// enqueue passes a message of a topic to an idle worker, or else to a new one. If maxInFlight workers are busy, the
// message waits. The caller holds mu.
func (p *Publisher) enqueue(topic int) {
	p.ready = append(p.ready, int32(topic)) // #nosec G115 -- an index of topics
	if p.idle >= len(p.ready) || p.running >= maxInFlight {
		p.work.Signal()
		return
	}
	p.running++
	p.workers.Go(p.worker)
}

// worker sends messages that are ready, until publishing ends. It closes answered after the last planned message.
func (p *Publisher) worker() {
	s := sender{p: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.ready) == 0 && !p.isStopped() {
			p.idle++
			p.work.Wait()
			p.idle--
		}
		if p.isStopped() {
			return
		}
		topic := int(p.ready[0])
		p.ready = p.ready[1:]
		q := &p.topics[topic]
		q.due--
		p.mu.Unlock()
		s.send(topic)
		p.mu.Lock()
		if !p.c.Service.Message.AnyOrder {
			if q.busy = q.due > 0; q.busy { // the topic moves to the end, and this worker continues with the first one
				p.ready = append(p.ready, int32(topic)) // #nosec G115 -- an index of topics
			}
		}
		if p.settled++; p.settled == p.planned {
			close(p.answered)
		}
	}
}

func (p *Publisher) isStopped() bool {
	select {
	case <-p.quit:
		p.ended = true
	case <-p.ctx.Done():
		p.ended = true
	default:
	}
	return p.ended
}

func (p *Publisher) settle(topic int, number uint64, o shard.PublishOutcome) {
	p.log.Settle(topic, number, o)
	switch o.State {
	case shard.Refused:
		p.report(topic, number, "was refused:", o.Text)
	case shard.Open:
		p.report(topic, number, "was not confirmed:", o.Text)
	case shard.Confirmed:
	}
	i := (number-1)*uint64(len(p.c.Topics)) + uint64(topic) // #nosec G115 -- an index of topics
	if lag := time.Duration(o.SentUS-p.log.Due(i)) * time.Microsecond; lag >= shard.LateAfter {
		p.report(topic, number, "was sent", lag.Round(100*time.Millisecond).String()+" behind the schedule")
	}
}
