package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/process"
	"github.com/sse-soak/sse-soak/internal/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/target"
)

const (
	handshakeScript = "load-tests/http/handshake.js"
	// limitHandshake: k6 makes at least 0.8 of the handshakes that a bare loop makes (issue 20).
	limitHandshake   = 1 / .8
	handshakeWorkers = 16
)

// measureHandshake compares how many TLS handshakes with a client's certificate k6 and the least Go program make each second, on
// the same backend, interleaved.
func (b *bench) measureHandshake() []Metric {
	certs := target.Certificates(filepath.Join(b.dir, "certs-handshake"))
	check(exec.CommandContext(b.ctx, "infra/compose/certs", string(certs)).Run())
	s := b.start(target.LocalConfig{Connections: 1, NoopInterval: time.Hour, Certificates: certs})
	defer s.stop()
	var ours, bare, ratio []float64
	for round := range b.rounds {
		script, loop := s.handshakes(b.handshakes), s.rawHandshakes(certs, b.handshakes)
		b.say("  round %d of %d: %.0f/s by k6, %.0f/s by the bare loop", round+1, b.rounds, script, loop)
		ours, bare, ratio = append(ours, script), append(bare, loop), append(ratio, loop/script)
	}
	return []Metric{
		metric("k6/x/handshake, handshakes per second", "1/s", ours...).means(
			"%d connections by k6 running %s with %d virtual users: TCP, a full TLS 1.3 handshake with a client's certificate, one answer; of the backend on the same cores; median over %d rounds",
			b.handshakes, handshakeScript, handshakeWorkers, b.rounds),
		metric("bare Go loop, handshakes per second", "1/s", bare...).means("the same by crypto/tls and a goroutine for each worker, nothing measured"),
		metric("bare Go loop against k6/x/handshake", "×", ratio...).limited(limitHandshake).means("median over %d rounds of the ratio of the rates within a round", b.rounds),
	}
}

// handshakes is the rate of the suite's script.
func (s service) handshakes(n int) float64 {
	dir := s.folder("handshake")
	env := map[string]string{"CONNECTIONS": strconv.Itoa(n), "WORKERS": strconv.Itoa(handshakeWorkers), "K6_SUMMARY_MODE": "disabled", "K6_NO_THRESHOLDS": "true"}
	maps.Copy(env, s.env)
	group := must(runners.Start(runners.Config{
		K6: "bin/k6", Script: handshakeScript, Plan: plan.Plan{Suite: "handshake", TestID: "bench", Runners: 1, BackendURL: s.URL}, Dir: dir, Env: env,
	}))
	ctx, stop := context.WithTimeout(s.ctx, 5*time.Minute)
	defer stop()
	check(group.Wait(ctx, ctx))
	var made int64
	for _, m := range (&runner{shards: filepath.Join(dir, "shards")}).shard().Metrics {
		if m.Name != shard.RequestDuration || m.Tags[shard.TagCode] != shard.CodeOK {
			continue
		}
		if made = m.Count; made == int64(n) {
			return float64(n) / (float64(m.LastUS-m.FirstUS) / 1e6)
		}
	}
	panic(failure{fmt.Errorf("%d of %d handshakes came about", made, n)})
}

// rawHandshakes is the rate of the bare loop, in a process of its own.
func (s service) rawHandshakes(certs target.Certificates, n int) float64 {
	log := filepath.Join(s.folder("raw-handshakes"), "out.json")
	o := rawHandshakes{Address: s.env["CONNECT_TO"] + ":" + must(url.Parse(s.URL)).Port(), Certs: string(certs), Connections: n, Workers: handshakeWorkers}
	p := must(process.Start(process.Spec{
		Name: "bare loop", Path: must(os.Executable()), Args: []string{"raw-handshakes", string(must(json.Marshal(o)))}, Env: os.Environ(), Log: log, Orphan: syscall.SIGKILL,
	}))
	defer p.Stop(s.ctx, syscall.SIGKILL, time.Second)
	select {
	case <-p.Done():
	case <-s.ctx.Done():
		check(s.ctx.Err())
	case <-time.After(5 * time.Minute):
		check(errors.New("the bare loop did not end within five minutes"))
	}
	text := must(os.ReadFile(log))
	var seconds float64
	if err := json.Unmarshal(text, &seconds); err != nil {
		check(fmt.Errorf("the bare loop said %q: %w", text, err))
	}
	return float64(n) / seconds
}
