// Package publish is the publisher of a run: it sends numbered messages to a service at a constant rate, and records
// the response to each.
//
// The model is open: a message is sent when it is due, without waiting for messages of other topics. If the process or
// the service is too slow, the message is sent as soon as possible, and its lag is recorded. No message is omitted. A
// message waits for the response to the previous message of its topic, so that the service receives both in a known
// order. It does not wait if the description allows any order.
package publish

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// maxInFlight limits the messages in flight, and thus the connections. Further messages wait.
const maxInFlight = 1000

// A Config configures a publisher. shard.Published describes Topics and Rate.
type Config struct {
	Service *service.Service
	Base    string // URL of the service
	Token   string // PUBLISH_TOKEN
	Topics  []string
	Run     func(topic int) string // marker of the messages of a topic in this run
	Rate    float64                // messages per second, all topics together
	Start   time.Time              // when the first message is due
	For     time.Duration          // period in which messages are due
	Timeout time.Duration          // time limit of a response; 0 means 10 s
	Padding string                 // padding of each message

	InsecureSkipVerify bool
	Proxies            proxy.Chooser // nil: the proxies of the environment
	// Report receives a sentence about the first problem of each kind, from any goroutine. It may be nil.
	Report func(string)
}

// A Publisher publishes until all messages are sent and answered, it is stopped, or its context ends.
type Publisher struct {
	c       Config
	planned uint64
	log     *shard.PublishLog
	base    time.Time // origin of the clock of now
	pool    *pool
	ctx     context.Context // context of Start; its end aborts messages in flight

	quit     chan struct{} // closed by Stop
	stopOnce sync.Once
	answered chan struct{} // closed when all planned messages have a response or an error
	done     chan struct{} // closed when all goroutines have ended
	workers  sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	work     sync.Cond  // signals that ready is not empty or ended is true
	ended    bool       // workers send no further messages
	settled  uint64     // messages that have a response or an error
	topics   []queue    // by topic
	ready    []int32    // topics with a message that can be sent; if the order is arbitrary, once per message
	idle     int        // workers that wait
	running  int        // workers, including those that wait
	reported []string   // kinds of problems that Report has received
}

type queue struct {
	due  uint32 // due, but not started
	busy bool   // the topic is in ready, or has a message in flight; ignored if the order is arbitrary
}

// Start starts a publisher. It returns an error if the configuration is invalid.
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

// now returns microseconds since 1970: the wall clock at the start, plus the monotonic clock since then.
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
	p.ended = true
	p.work.Broadcast()
	p.mu.Unlock()
	p.workers.Wait()
}

// Published returns the messages sent so far.
func (p *Publisher) Published() *shard.Published {
	p.mu.Lock()
	finished := p.settled == p.planned
	p.mu.Unlock()
	return p.log.Published(finished)
}

// Done returns a channel that is closed when no message is in flight and none follows.
func (p *Publisher) Done() <-chan struct{} { return p.done }

// Stop stops sending, and waits for the responses to messages in flight, for Config.Timeout at most.
func (p *Publisher) Stop() {
	p.stopOnce.Do(func() { close(p.quit) })
	<-p.done
}

// Sums returns the current counts.
func (p *Publisher) Sums() shard.PublishSums { return p.log.Sums() }

// report passes the first problem of each kind to Config.Report.
func (p *Publisher) report(topic int, number uint64, kind, detail string) {
	p.mu.Lock()
	isFirst := !slices.Contains(p.reported, kind)
	if isFirst {
		p.reported = append(p.reported, kind)
	}
	p.mu.Unlock()
	if isFirst && p.c.Report != nil {
		p.c.Report(fmt.Sprintf("message %d of %s %s %s", number, p.c.Topics[topic], kind, detail))
	}
}
