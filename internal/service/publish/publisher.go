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
	"sync/atomic"
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
	sending context.Context // ends with ctx, or when stop is called; no message is sent afterwards
	stop    context.CancelFunc

	done     chan struct{} // closed when all goroutines have ended
	workers  sync.WaitGroup
	inFlight chan struct{} // has an element for each message in flight
	settled  atomic.Uint64 // messages that have a response or an error

	mu       sync.Mutex // guards the fields below
	topics   []queue    // by topic
	running  int        // workers
	reported []string   // kinds of problems that Report has received
}

type queue struct {
	due     uint32 // due, but not started
	workers int    // goroutines that send messages of the topic: at most one, unless the order is arbitrary
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
		done: make(chan struct{}), inFlight: make(chan struct{}, maxInFlight), topics: make([]queue, len(c.Topics)),
	}
	p.sending, p.stop = context.WithCancel(ctx)
	go p.run()
	return p, nil
}

// now returns microseconds since 1970: the wall clock at the start, plus the monotonic clock since then.
func (p *Publisher) now() int64 { return p.base.UnixMicro() + time.Since(p.base).Microseconds() }

func (p *Publisher) run() {
	defer close(p.done)
	defer p.pool.close()
	defer p.stop()
	p.schedule()
	p.workers.Wait()
}

// Published returns the messages sent so far.
func (p *Publisher) Published() *shard.Published {
	return p.log.Published(p.settled.Load() == p.planned)
}

// Done returns a channel that is closed when no message is in flight and none follows.
func (p *Publisher) Done() <-chan struct{} { return p.done }

// Stop stops sending, and waits for the responses to messages in flight, for Config.Timeout at most.
func (p *Publisher) Stop() {
	p.stop()
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
