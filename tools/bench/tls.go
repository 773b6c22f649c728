package main

import (
	"os/exec"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/target"
)

// The limits of issue 18.
const (
	limitTLSKB  = 9
	limitTLSCPU = .008
)

// tlsScript is the soak script for a service that wants a certificate of its clients.
const tlsScript = "tools/bench/tls.js"

// measureTLS compares what the soak script takes over TLS with what it takes over plain HTTP, interleaved.
func (b *bench) measureTLS() (out []Metric) {
	certs := filepath.Join(b.dir, "certs")
	check(exec.CommandContext(b.ctx, "infra/compose/certs", certs).Run())
	plain := b.startService(b.encrypted, time.Second, false)
	defer plain.stop()
	encrypted := b.start(target.LocalConfig{Connections: b.encrypted, NoopInterval: time.Second, Certificates: target.Certificates(certs)})
	defer encrypted.stop()
	all := []struct {
		*contender
		of service
	}{
		{&contender{
			name: "TLS 1.3", what: "k6 with 1 VU running " + tlsScript + " (the soak script with a client's certificate)", limit: limitTLSKB,
			start: func(n int) client { return encrypted.startRunner(tlsScript, n, n) },
		}, encrypted},
		{&contender{
			name: "plain", what: "k6 with 1 VU running " + soakScript,
			start: func(n int) client { return plain.startRunner(soakScript, n, n) },
		}, plain},
	}
	memory := make([][]float64, len(all))
	for round := range b.rounds {
		b.say("memory and CPU over TLS and plain, round %d of %d", round+1, b.rounds)
		for i, c := range all {
			small, large := c.of.once(c.contender, b.base, b.window), c.of.once(c.contender, b.encrypted, b.window)
			memory[i] = append(memory[i], (large.rss-small.rss)/float64(b.encrypted-b.base)/kb)
			c.costs = append(c.costs, large.per(1000))
		}
	}
	for i, c := range all {
		out = append(out, metric(c.name+", RSS per connection", "KB", memory[i]...).limited(c.limit).means(
			"median RSS of %s holding %d connections less the same holding %d, divided by %d; one noop per second and connection; median over %d rounds",
			c.what, b.encrypted, b.base, b.encrypted-b.base, b.rounds))
	}
	for i, c := range all {
		f := metric(c.name+", CPU-s per 1000 noops", "s", c.costs...).means(
			"user and system CPU of the same over %v of steady state at %d connections, ÷ noops sent in it; every one was received", b.window, b.encrypted)
		if i == 0 {
			f = f.limited(limitTLSCPU)
		}
		out = append(out, f)
	}
	return out
}
