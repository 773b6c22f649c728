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
	noop := noops.soakScript("noop", soakScript, nothing)
	message := messages.soakScript("JSON of 100 bytes", soakScript, func(p *plan.Plan) {
		p.Service, p.Topics, p.PublishRate, p.Marker = must(filepath.Abs(described)), 1, 1, "bench-12345678"
	})
	message.what += " with SERVICE " + described + ", which publishes a message a second itself,"
	b.inTurns(b.full, noop, message)
	return []Metric{
		noop.perConnection(b.full), message.perConnection(b.full),
		noop.perThousand(b.full, "noops"), message.perThousand(b.full, "messages"),
		message.against(noop).limited(limitMessageRatio),
	}
}
