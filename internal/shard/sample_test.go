package shard

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// segmentOf returns the nth of count segments, from 1.
func segmentOf(n, count int) string {
	boundary := func(i int) string {
		switch i {
		case 0:
			return "0"
		case count:
			return "1"
		}
		return fmt.Sprintf("%d/%d", i, count)
	}
	return boundary(n-1) + ":" + boundary(n)
}

func planFor(runners, connections int) plan.Plan {
	p := plan.Default()
	p.TestID, p.Prefix, p.Runners, p.Connections, p.BackendURL = "t", "d-", runners, connections, "http://h"
	return p
}

// newEmptyShard returns the shard of runner n without any observations.
func newEmptyShard(p plan.Plan, n int) *Shard {
	return &Shard{
		Schema: Schema, Plan: p,
		Runner: Runner{
			TestID: p.TestID, Index: n, Segment: segmentOf(n, p.Runners), Script: "s.js", ScriptHash: "abc",
			Host: fmt.Sprintf("h%d", n), State: Finished, StartedUS: 1_700_000_000_000_000, EndedUS: 1_700_000_060_000_000,
		},
		Connect: NewHistogram(), FirstMessage: NewHistogram(), Lateness: NewHistogram(),
	}
}

// randomRun returns the shards of a random run by p.Runners runners, and the shard of the same run by a single runner.
func randomRun(r *rand.Rand, p plan.Plan) (parts []*Shard, single *Shard) {
	one := p
	one.Runners = 1
	single = newEmptyShard(one, 1)
	single.Runner.Host = "whole"
	for n := 1; n <= p.Runners; n++ {
		parts = append(parts, newEmptyShard(p, n))
	}
	apply := func(n int, do func(s *Shard)) {
		do(parts[n])
		do(single)
	}
	for i := range p.Connections {
		n := i * p.Runners / p.Connections
		apply(n, func(s *Shard) {
			s.Connections = append(s.Connections, ledger.Record{
				ID: p.ClientID(i), State: ledger.Completed, Streams: 1, Attempts: 1, Last: uint64(i),
				Counts: ledger.Counts{Received: uint64(i)},
			})
		})
		for range 5 {
			d := time.Duration(r.ExpFloat64() * float64(5*time.Millisecond))
			apply(n, func(s *Shard) { s.Connect.Record(d); s.Lateness.Record(d / 2); s.FirstMessage.Record(d * 3) })
		}
		apply(n, func(s *Shard) { s.countCheck("opened", i%7 != 0) })
		v := float64(r.IntN(1000))
		apply(n, func(s *Shard) { s.metric("bytes", v) })
		b := Bucket{Unix: 1_700_000_000 + 5*int64(r.IntN(4)), Open: 1, Opened: 2, Closed: 3, Noops: r.IntN(9), Late: r.IntN(3), Faults: 1, ProcessUsage: ProcessUsage{RSS: 10, CPUPercent: 2, Goroutines: 4, GCPauseUS: int64(r.IntN(99))}}
		h := NewHistogram()
		h.Record(time.Duration(r.IntN(1e9)))
		b.Lateness = h.Pack()
		apply(n, func(s *Shard) { s.Series, s.Points = append(s.Series, b), append(s.Points, b) })
	}
	return parts, single
}

func (s *Shard) countCheck(name string, pass bool) {
	if len(s.Checks) == 0 {
		s.Checks = []ScriptCheck{{Name: name}}
	}
	if pass {
		s.Checks[0].Passes++
	} else {
		s.Checks[0].Fails++
	}
}

func (s *Shard) metric(name string, v float64) {
	if len(s.Metrics) == 0 {
		s.Metrics = []Metric{{Name: name, Type: "trend", Min: v, Max: v, Trend: NewHistogram()}}
	}
	m := &s.Metrics[0]
	m.Sum += v
	m.Count++
	m.Min, m.Max = min(m.Min, v), max(m.Max, v)
	m.Trend.Record(time.Duration(v) * time.Millisecond)
}
