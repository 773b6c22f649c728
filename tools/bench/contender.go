package main

import (
	"errors"
	"time"
)

// A contender holds connections in a way that is compared with the others. What was measured of it has a value for each round.
type contender struct {
	name, what        string
	of                service
	start             func(n int) client
	limitKB           float64
	peersKB, peersCPU string

	memory []float64 // KB per connection
	whole  []float64 // MB of the process with all connections
	ramp   []float64 // its largest RSS, ÷ that
	cpu    []float64 // s per 1000 noops
	noops  uint64
}

// inTurns measures all of them in each round, with few connections and with many, so that other load on the machine meets
// all alike. The difference of the two leaves out what the process itself takes.
func (b *bench) inTurns(connections int, all ...*contender) {
	for round := range b.rounds {
		b.say("round %d of %d", round+1, b.rounds)
		for _, c := range all {
			b.say(" %s", c.what)
			small, large := c.once(b.base, max(b.window/2, 2*time.Second)), c.once(connections, b.window)
			c.memory = append(c.memory, (large.rss-small.rss)/float64(connections-b.base)/kb)
			c.whole, c.ramp = append(c.whole, large.rss/mb), append(c.ramp, large.peak/large.rss)
			c.cpu, c.noops = append(c.cpu, large.per(1000)), c.noops+large.noops
		}
	}
}

// once measures one client. On a saturated machine noops can be on their way to a runner that is
// told to end: what cannot be accounted for is measured again, twice at most.
func (c *contender) once(n int, window time.Duration) (result cost) {
	s := c.of
	measure := func() {
		before := s.counts()
		client := c.start(n)
		defer client.kill()
		s.hold(client, n, s.settle)
		result = s.steady(client.pids(), window)
		received := s.finish(client, before)
		s.say("  %5d connections: %.1f MB, %.4f CPU-s per 1000 noops, %d received, none missed", n, result.rss/mb, result.per(1000), received)
	}
	err := attempt(measure)
	for tries := 1; tries < 3 && errors.Is(err, errUnaccounted); tries++ {
		s.say("  again: %v", err)
		err = attempt(measure)
	}
	check(err)
	return result
}

// perConnection is its memory for each further connection.
func (c *contender) perConnection(connections int) Metric {
	b := c.of.bench
	return metric(c.name+", RSS per connection", "KB", c.memory...).limited(c.limitKB).peers(c.peersKB).means(
		"median RSS of %s holding %d connections less the same holding %d, divided by %d; one noop per second and connection; median over %d rounds",
		c.what, connections, b.base, connections-b.base, b.rounds)
}

// perThousand is its CPU for what it receives.
func (c *contender) perThousand(connections int, of string) Metric {
	b := c.of.bench
	return metric(c.name+", CPU-s per 1000 "+of, "s", c.cpu...).peers(c.peersCPU).means(
		"user and system CPU (/proc/PID/stat) of %s over %v of steady state at %d connections, after the ramp, ÷ %s sent in it; "+
			"nothing subtracted; %d in all windows, and each client received every one it was ever sent", c.what, b.window, connections, of, c.noops)
}

// against is its CPU beside that of another one.
func (c *contender) against(other *contender) Metric {
	var ratios []float64
	for round := range c.cpu {
		ratios = append(ratios, c.cpu[round]/other.cpu[round])
	}
	return metric(c.name+", CPU against "+other.name, "×", ratios...).means("median over %d rounds of the ratio within a round", len(ratios))
}
