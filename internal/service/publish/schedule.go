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
		case <-p.sending.Done():
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

// queue records that one more message of a topic is due. It starts a worker if the topic has none. If the description
// allows any order, it starts a further worker, unless maxInFlight workers run. The caller holds mu.
func (p *Publisher) queue(topic int) {
	q := &p.topics[topic]
	q.due++
	if q.workers == 0 || p.c.Service.Message.AnyOrder && p.running < maxInFlight {
		q.workers++
		p.running++
		p.workers.Go(func() { p.work(topic) })
	}
}

// work sends the messages of a topic that are due. Before each message it waits until fewer than maxInFlight are in
// flight, so topics with several due messages take turns.
func (p *Publisher) work(topic int) {
	for p.next(topic) {
		select {
		case p.inFlight <- struct{}{}:
		case <-p.sending.Done():
		}
		if p.sending.Err() == nil {
			p.send(topic)
			<-p.inFlight
		}
	}
}

// next reports whether a worker has another message of its topic to send. Otherwise, the worker ends.
func (p *Publisher) next(topic int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.topics[topic]
	if q.due == 0 || p.sending.Err() != nil {
		q.workers--
		p.running--
		return false
	}
	q.due--
	return true
}

func (p *Publisher) settle(topic int, number uint64, o shard.PublishOutcome) {
	p.log.Settle(topic, number, o)
	p.settled.Add(1)
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
