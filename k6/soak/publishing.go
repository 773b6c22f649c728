package soak

import (
	"context"
	"time"

	"go.k6.io/k6/v2/js/modules"

	"github.com/sse-soak/sse-soak/internal/service/publish"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Times without messages at the start and the end of a run: for streams to open, and for the last message to arrive.
const (
	publishDelay = 2 * time.Second // between the start of the first stream and the first message
	publishTail  = 2 * time.Second // between the last message and the end of the streams
)

// begin starts the cutter, and the publisher if this runner publishes. token is for publishing, and runner is the
// variable RUNNER. Each call of hold and each new Ledger of a script calls begin. After a success, further calls have
// no effect.
func (r *recorder) begin(vu modules.VU, token string, runner string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.startCutter(vu, runner); err != nil {
		return err
	}
	if r.publishRequested || !r.plan.Published() {
		return r.publishErr
	}
	r.publishRequested = true
	options := vu.State().Options
	if index, err := runnerIndex(runner, options); err != nil || index != 1 {
		return err
	}
	p := r.plan // the plan does not change after the first stream
	topics := make([]string, p.Topics)
	for k := range topics {
		topics[k] = p.TopicName(k)
	}
	log := vu.State().Logger
	publisher, err := publish.Start(context.Background(), publish.Config{
		Service: r.service, Base: p.BackendURL, Token: token, Run: p.MarkerOf, Topics: topics, Rate: p.PublishRate,
		Start: time.Now().Add(publishDelay), For: publishDuration(p.Hold()), Padding: p.Padding(), InsecureSkipVerify: options.InsecureSkipTLSVerify.Bool,
		Report: func(sentence string) { log.Warn("The publisher: ", sentence) },
	})
	if err != nil {
		r.publishErr = err
		return err
	}
	r.publisher = publisher
	r.sharesClock.Store(true)
	return nil
}

// publishDuration returns how long a run publishes if its streams are open for hold: at least half of that time.
func publishDuration(hold time.Duration) time.Duration {
	return max(hold-publishDelay-publishTail, hold/2)
}

// finish stops the cutter and the publisher, and waits for the responses to messages in flight.
func (r *recorder) finish() {
	r.mu.Lock()
	publisher, stopCutting := r.publisher, r.stopCutter
	r.mu.Unlock()
	if stopCutting != nil {
		stopCutting()
	}
	if publisher != nil {
		publisher.Stop()
	}
}

// published returns the messages that this runner has published, nil if it does not publish. The caller holds mu.
func (r *recorder) published() *shard.Published {
	if r.publisher == nil {
		return nil
	}
	return r.publisher.Published()
}
