package soak

import (
	"context"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/internal/service/publish"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Times without messages at the start and the end of a run: for streams to open, and for the last message to arrive.
const (
	publishDelay = 2 * time.Second // between the start of the first stream and the first message
	publishTail  = 2 * time.Second // between the last message and the end of the streams
)

// begin starts the cutter if the plan has cuts, and the publisher if this runner publishes. token is the publisher's
// token, and runner is the value of the variable RUNNER. Each call of hold and each new Ledger of a script calls begin.
// Later calls return the error of the first call. The plan does not change after the first stream.
func (r *recorder) begin(vu modules.VU, token string, runner string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isStarted || !r.plan.HasCuts() && !r.plan.Published() {
		return r.startErr
	}
	r.isStarted = true
	var index int
	if index, r.startErr = runnerIndex(runner, vu.State().Options); r.startErr != nil {
		return r.startErr
	}
	if r.plan.HasCuts() {
		r.startCutter(index)
	}
	if r.plan.Published() && index == 1 {
		r.startErr = r.startPublisher(vu.State(), token)
	}
	return r.startErr
}

// startPublisher starts the publisher of the run. The caller holds mu.
func (r *recorder) startPublisher(state *lib.State, token string) (err error) {
	p := r.plan
	topics := make([]string, p.Topics)
	for k := range topics {
		topics[k] = p.TopicName(k)
	}
	r.publisher, err = publish.Start(context.Background(), publish.Config{
		Service: r.service, Base: p.BackendURL, Token: token, Run: p.MarkerOf, Topics: topics, Rate: p.PublishRate,
		Start: time.Now().Add(publishDelay), For: publishDuration(p.Hold()), Padding: p.Padding(), InsecureSkipVerify: state.Options.InsecureSkipTLSVerify.Bool,
		Report: func(sentence string) { state.Logger.Warn("Publisher: ", sentence) },
	})
	if err == nil {
		r.sharesClock.Store(true)
	}
	return err
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

// publishedMessages returns the messages that this runner has published, nil if it does not publish. The caller holds
// mu.
func (r *recorder) publishedMessages() *shard.Published {
	if r.publisher == nil {
		return nil
	}
	return r.publisher.Published()
}
