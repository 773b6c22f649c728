package main

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// The limits of issues 2 and 18. What the soak script takes beside the epoll client is the whole cost of k6, the ledger and
// all checks.
const (
	limitExtensionKB = 12
	limitRawRatio    = 1.5
	limitSoakKB      = 3
	limitEpollRatio  = 1.6
	limitWholeMB     = 60

	bareScript = "tools/bench/runner.js"
	soakScript = "load-tests/sse/connectionTest.js"

	peersRunnerKB  = "k6 + xk6-sse 225, k6 asyncRequest 81–204, Locust 27, Gatling 8–50, net/http 32, raw in a k6 VU 7.6, raw 7.1, one epoll loop 0.3"
	peersRunnerCPU = "k6 + xk6-sse 0.061, k6 asyncRequest 0.022, Locust 0.037, Gatling 0.038–0.060, net/http 0.021, raw in a k6 VU 0.018, raw 0.020, one epoll loop 0.012"
)

// measureRunner compares a runner with the least that could hold its streams.
func (b *bench) measureRunner() (out []Metric) {
	s := b.startService(b.full, time.Second, false)
	defer s.stop()
	extension := &contender{
		name: "extension", what: "k6 with 1 VU running " + bareScript + " (EventSource and Ledger)", of: s,
		start:   func(n int) client { return s.startRunner(bareScript, n, n) },
		limitKB: limitExtensionKB, peersKB: peersRunnerKB, peersCPU: peersRunnerCPU,
	}
	soak := s.soakScript("soak script", soakScript, nothing)
	soak.limitKB = limitSoakKB
	raw := &contender{
		name: "raw client", what: "a bare Go client (net.Dial, one goroutine and 512 bytes per connection)", of: s,
		start:   func(n int) client { return s.startRaw(rawOptions{Connections: n}) },
		peersKB: "7.1", peersCPU: "0.020",
	}
	epoll := &contender{
		name: "epoll client", what: "a bare epoll client (one loop, which parses nothing and counts noops)", of: s,
		start:   func(n int) client { return s.startRaw(rawOptions{Connections: n, Epoll: true}) },
		peersKB: "0.3", peersCPU: "0.012",
	}
	accounting := &contender{
		name: "epoll client with ledgers", what: "a bare epoll client that keeps a ledger of each connection, as the soak script does", of: s,
		start: func(n int) client { return s.startRaw(rawOptions{Connections: n, Ledgers: true}) },
	}
	all := []*contender{extension, soak, raw, epoll, accounting}
	b.inTurns(b.full, all...)
	for _, c := range all {
		out = append(out, c.perConnection(b.full),
			metric(fmt.Sprintf("%s, RSS at %d", c.name, b.full), "MB", c.whole...).means("all of the process, k6 included, in the steady state"))
	}
	for _, c := range all {
		out = append(out, c.perThousand(b.full, "noops"))
	}
	return append(out,
		metric("soak script, RSS of the ramp against the steady state", "×", soak.ramp...).means(
			"largest RSS of the process from its start on (VmHWM) ÷ its median in the steady state, at %d connections", b.full),
		extension.against(raw).limited(limitRawRatio), soak.against(raw).limited(limitRawRatio),
		extension.against(epoll), soak.against(epoll).limited(limitEpollRatio), soak.against(accounting),
		s.wholeRunner())
}

// wholeRunner is all that a runner takes, with as many virtual users as a soak plans.
func (s service) wholeRunner() Metric {
	p := plan.Default()
	p.Connections, p.Runners = s.growing, 1
	c := &contender{what: "k6", of: s, start: func(n int) client { return s.startRunner(soakScript, n, p.Density()) }}
	var whole []float64
	for range s.rounds {
		whole = append(whole, c.once(s.growing, max(s.window/2, 2*time.Second)).rss/mb)
	}
	return metric(fmt.Sprintf("soak script, RSS of a runner with %d", s.growing), "MB", whole...).limited(limitWholeMB).means(
		"median RSS of k6 running %s with %d connections, %d to a VU as `make soak` plans, in the steady state; median over %d rounds",
		soakScript, s.growing, p.Density(), s.rounds)
}

// nothing is changed of the plan.
func nothing(*plan.Plan) {}

// soakScript is a contender that runs a script like the soak's in one virtual user, by a plan that is changed so.
func (s service) soakScript(name, script string, change func(*plan.Plan)) *contender {
	return &contender{
		name: name, what: "k6 with 1 VU running " + script, of: s,
		start: func(n int) client { return s.startSoak(script, n, n, change) },
	}
}
