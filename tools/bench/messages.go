package main

import (
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// limitMessageRatio is of issue 15: what a JSON message costs against a noop.
const limitMessageRatio = 2

// described is a service that is published to, with messages of 100 bytes.
const described = "tools/bench/service.js"

// measureMessages compares what a soak takes per message of a described service, whose marker, number, time and checksum
// are in JSON, with what it takes per noop. Both come once a second on every stream, all at the same instant.
func (b *bench) measureMessages() []Metric {
	noops := b.startService(b.full, time.Second, false)
	defer noops.stop()
	messages := b.startService(b.full, time.Hour, false)
	defer messages.stop()
	noop := &contender{what: "k6 with 1 VU running " + soakScript, start: func(n int) client { return noops.startRunner(soakScript, n, n) }}
	message := &contender{what: "the same with SERVICE " + described, start: func(n int) client { return messages.startPublished(n) }}
	var ratios []float64
	for round := range b.rounds {
		b.say("CPU of messages and of noops, round %d of %d", round+1, b.rounds)
		noop.costs = append(noop.costs, noops.once(noop, b.full, b.window).per(1000))
		message.costs = append(message.costs, messages.once(message, b.full, b.window).per(1000))
		ratios = append(ratios, message.costs[round]/noop.costs[round])
	}
	const means = "user and system CPU of %s over %v of steady state at %d connections, ÷ what was received in it; every one was received, and none doubted"
	return []Metric{
		metric("noop, CPU-s per 1000", "s", noop.costs...).means(means, noop.what, b.window, b.full),
		metric("JSON of 100 bytes, CPU-s per 1000", "s", message.costs...).means(
			means+"; it publishes them itself, one a second", message.what, b.window, b.full),
		metric("JSON of 100 bytes against noop", "×", ratios...).limited(limitMessageRatio).means("median over %d rounds of the ratio within a round", b.rounds),
	}
}

// startPublished starts a runner that soaks the described service and publishes to it.
func (s service) startPublished(connections int) *runner {
	return s.startSoak(soakScript, connections, connections, func(p *plan.Plan) {
		p.Service, p.Topics, p.PublishRate, p.Marker = must(filepath.Abs(described)), 1, 1, "bench-12345678"
	})
}
