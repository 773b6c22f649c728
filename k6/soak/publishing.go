package soak

import (
	"context"
	"time"

	"go.k6.io/k6/v2/js/modules"

	"github.com/sse-soak/sse-soak/internal/service/publish"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// The first message is published so long after the first stream was begun, and the last so long before streams end:
// they have time to open, and it has time to come.
const (
	publishAfter  = 2 * time.Second
	publishBefore = 2 * time.Second
)

// begin starts what the first stream begins: the cutter, and the publisher if this runner has it.
func (r *recorder) begin(vu modules.VU, token string, runner string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.startCutting(vu, runner); err != nil {
		return err
	}
	if r.publishRequested || !r.plan.Published() {
		return r.publishingFailed
	}
	r.publishRequested = true
	options := vu.State().Options
	if index, err := runnerIndex(runner, options); err != nil || index != 1 {
		return err
	}
	p := r.plan // does not change any more
	topics := make([]string, p.Topics)
	for k := range topics {
		topics[k] = p.TopicName(k)
	}
	log := vu.State().Logger
	publisher, err := publish.Start(context.Background(), publish.Config{
		Service: r.service, Base: p.BackendURL, Token: token, Run: p.MarkerOf, Topics: topics, Rate: p.PublishRate,
		Start: time.Now().Add(publishAfter), For: publishDuration(p.Hold()), Padding: p.Padding(), InsecureSkipVerify: options.InsecureSkipTLSVerify.Bool,
		Say: func(sentence string) { log.Warn("The publisher: ", sentence) },
	})
	if err != nil {
		r.publishingFailed = err
		return err
	}
	r.publishing = publisher
	r.oneClock.Store(true)
	return nil
}

// publishDuration returns how long messages are published. A short run uses at least half of its time.
func publishDuration(hold time.Duration) time.Duration {
	return max(hold-publishAfter-publishBefore, hold/2)
}

// finish ends the cutter and the publisher, and waits for the answers of what is in flight.
func (r *recorder) finish() {
	r.mu.Lock()
	publisher, stopCutting := r.publishing, r.stopCutting
	r.mu.Unlock()
	if stopCutting != nil {
		stopCutting()
	}
	if publisher != nil {
		publisher.Stop()
	}
}

// published is what this runner published up to now, nil where it does not.
func (r *recorder) published() *shard.Published {
	if r.publishing == nil {
		return nil
	}
	return r.publishing.Published()
}
