// Package publish is the publisher of a run: it sends numbered messages to a service at a constant rate, and records
// what the service answered to each.
//
// The model is open: a message is sent when it is due, whether or not those before it were answered. Where that
// cannot be (the process was late, the service is slow), it is sent as soon as it can be, and its lag is recorded.
// None is left out. The next message of a topic waits for the answer of the one before, or nobody could say in which
// order the service had them; topics do not wait for each other.
package publish

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// mostInFlight bounds the connections. With as many unanswered messages those that are due wait.
const mostInFlight = 1000

// Config says what is published. Topics, Rate and For are what shard.Published says of them.
type Config struct {
	Service *service.Service
	Base    string // URL of the service
	Token   string // PUBLISH_TOKEN
	Topics  []string
	Run     func(topic int) string // what marks the messages of a topic as those of this run
	Rate    float64                // messages per second, all topics together
	Start   time.Time              // when the first is due
	For     time.Duration          // for how long they are due
	Timeout time.Duration          // of an answer, 10 s if 0
	Padding string                 // of each message

	InsecureSkipVerify bool
	Proxies            proxy.Chooser // nil: the environment's
	// Say is told in a sentence when something goes wrong for the first time, by any goroutine; nil for nobody.
	Say func(string)
}

// Progress is how far a publisher is.
type Progress struct {
	Sent, Confirmed, Refused, Open uint64        // Open: without an answer, those in flight among them
	Behind                         time.Duration // for how long the oldest message that is due has been waiting to be sent
}

// A Publisher publishes, until it has sent everything and was answered, was stopped, or its context ends.
type Publisher struct {
	c       Config
	planned uint64
	log     *shard.PublishLog
	base    time.Time // what its clock counts from
	pool    *pool
	ctx     context.Context // of Start: it ends what is in flight

	quit     chan struct{} // no more sends
	stopOnce sync.Once
	answered chan struct{} // all of the plan
	done     chan struct{}
	workers  sync.WaitGroup

	mu      sync.Mutex // of all below
	work    sync.Cond  // there is something in ready, or it is over
	over    bool
	finish  bool    // all of the plan was sent and answered or given up
	topics  []queue // by topic
	ready   []int32 // topics of which a message can be sent
	idle    int     // workers that wait
	running int     // workers
	settled uint64  // messages
	said    [3]bool // by kind of trouble
}

// queue counts the messages of a topic.
type queue struct {
	due   uint32 // due and not begun
	begun uint32 // sent, or being sent
	busy  bool   // in ready or in flight; only where order matters
}

// Start checks the configuration and begins to publish. Its error is a sentence.
func Start(ctx context.Context, c Config) (*Publisher, error) {
	planned, err := c.check()
	if err != nil {
		return nil, err
	}
	base := time.Now()
	p := &Publisher{
		c: c, planned: planned, base: base, ctx: ctx, pool: newPool(c.InsecureSkipVerify, c.Proxies),
		log:  shard.NewPublishLog(c.Topics, c.Rate, c.Start.UnixMicro(), planned),
		quit: make(chan struct{}), answered: make(chan struct{}), done: make(chan struct{}), topics: make([]queue, len(c.Topics)),
	}
	p.work.L = &p.mu
	go p.run()
	return p, nil
}

// now is the wall clock in microseconds since 1970, as it was at the start: it does not jump.
func (p *Publisher) now() int64 { return p.base.UnixMicro() + time.Since(p.base).Microseconds() }

func (p *Publisher) run() {
	defer close(p.done)
	defer p.pool.close()
	p.schedule()
	select {
	case <-p.answered:
	case <-p.quit:
	case <-p.ctx.Done():
	}
	p.mu.Lock()
	p.over = true
	p.work.Broadcast()
	p.mu.Unlock()
	p.workers.Wait()
}

// Published is what was published up to now.
func (p *Publisher) Published() *shard.Published {
	p.mu.Lock()
	finished := p.finish
	p.mu.Unlock()
	return p.log.Published(finished)
}

// Done is closed when nothing is sent any more and nothing is in flight.
func (p *Publisher) Done() <-chan struct{} { return p.done }

// Stop has nothing more sent, and waits for the answers of what is in flight, for Config.Timeout at most.
func (p *Publisher) Stop() {
	p.stopOnce.Do(func() { close(p.quit) })
	<-p.done
}

// Progress is how far it is now.
func (p *Publisher) Progress() Progress {
	sums := p.log.Sums()
	out := Progress{Sent: sums.Sent, Confirmed: sums.Confirmed, Refused: sums.Refused, Open: sums.Open}
	next := p.planned
	p.mu.Lock()
	for t := range p.topics {
		next = min(next, uint64(p.topics[t].begun)*uint64(len(p.topics))+uint64(t))
	}
	p.mu.Unlock()
	if next < p.planned {
		out.Behind = max(0, time.Duration(p.now()-p.log.Due(next))*time.Microsecond)
	}
	return out
}

// trouble is what Say is told of, once each.
type trouble int

const (
	wasRefused trouble = iota
	wasOpen
	isLate
)

func (p *Publisher) say(kind trouble, topic int, number uint64, text string) {
	p.mu.Lock()
	first := !p.said[kind]
	p.said[kind] = true
	p.mu.Unlock()
	if first && p.c.Say != nil {
		p.c.Say(fmt.Sprintf("message %d of %s %s", number, p.c.Topics[topic], text))
	}
}
