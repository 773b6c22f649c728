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
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/secret"
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
	running  int        // number of workers
	reported []string   // kinds of problems that Report has received
}

type queue struct {
	due     uint32 // messages that are due, but not started
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

// check validates the configuration, sets its defaults, and returns the number of planned messages.
func (c *Config) check() (planned uint64, err error) {
	c.Base = strings.TrimRight(c.Base, "/")
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	messages := max(0, math.Ceil(c.For.Seconds()*c.Rate-1e-6)) // in binary, 0.07 × 100 is slightly more than 7
	switch {
	case c.Service == nil:
		return 0, errors.New("publishing needs a service description; set SERVICE")
	case c.Service.Publish == nil:
		return 0, fmt.Errorf("the description of %s has no publish; add it, or set PUBLISH_RATE=0 if another program publishes", c.Service.Name)
	case len(c.Topics) == 0 || len(c.Topics) > shard.MaxTopics:
		return 0, fmt.Errorf("TOPICS must be from 1 to %d in a run that publishes, got %d", shard.MaxTopics, len(c.Topics))
	case !(c.Rate > 0 && c.Rate <= shard.MaxRate):
		return 0, fmt.Errorf("PUBLISH_RATE must be above 0 and at most %d messages per second, got %g", shard.MaxRate, c.Rate)
	case !(messages >= 1 && messages <= shard.MaxPublished):
		return 0, fmt.Errorf("a run must publish from 1 to %d messages, got %.0f (%g per second for %s); change PUBLISH_RATE or SECONDS",
			shard.MaxPublished, messages, c.Rate, c.For)
	}
	for k, topic := range c.Topics {
		if err := c.checkURL(topic, c.Run(k)); err != nil {
			return 0, err
		}
	}
	return uint64(messages), nil
}

func (c *Config) checkURL(topic, run string) error {
	text := string(c.Service.Publish.URL.Append(nil, &service.Values{Base: c.Base, Topic: topic, Run: run, Token: c.Token, Seq: 1}))
	display := secret.Hide(text, c.Token)
	u, err := url.Parse(text)
	switch at := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }); {
	case at >= 0:
		return fmt.Errorf("publish.url for the topic %s must have only printable ASCII characters and no spaces, got %.200q; correct publish.url, or the URL of the service", topic, display)
	case err != nil:
		return fmt.Errorf("publish.url for the topic %s must be a URL (%w), got %.200q; correct publish.url, or the URL of the service", topic, withoutURL(err), display)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("publish.url for the topic %s must begin with http:// or https:// and a host, got %.200q", topic, display)
	case u.Fragment != "":
		return fmt.Errorf("publish.url for the topic %s must have no fragment (#), got %.200q", topic, display)
	}
	return nil
}

// withoutURL removes the URL, which may contain a token, from an error of url.Parse.
func withoutURL(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}
