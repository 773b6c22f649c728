package main

import (
	"os/exec"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/target"
)

// The limits of issue 18.
const (
	limitTLSKB = 9
)

// tlsScript is the soak script for a service that wants a certificate of its clients.
const tlsScript = "tools/bench/tls.js"

// measureTLS compares what the soak script takes over TLS with what it takes over plain HTTP, interleaved.
func (b *bench) measureTLS() []Metric {
	certs := filepath.Join(b.dir, "certs")
	check(exec.CommandContext(b.ctx, "infra/compose/certs", certs).Run())
	plain := b.startService(b.encrypted, time.Second, false)
	defer plain.stop()
	encrypted := b.start(target.LocalConfig{Connections: b.encrypted, NoopInterval: time.Second, Certificates: target.Certificates(certs)})
	defer encrypted.stop()
	secure, open := encrypted.soakScript("TLS 1.3", tlsScript, nothing), plain.soakScript("plain", soakScript, nothing)
	secure.what += " (the soak script with a client's certificate)"
	secure.limitKB = limitTLSKB
	b.inTurns(b.encrypted, secure, open)
	return []Metric{
		secure.perConnection(b.encrypted), open.perConnection(b.encrypted),
		secure.perThousand(b.encrypted, "noops"), open.perThousand(b.encrypted, "noops"), secure.against(open),
	}
}
