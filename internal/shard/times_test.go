package shard

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

func TestClientsOutsideOfTheRunAreRejected(t *testing.T) {
	t.Parallel()
	const later = 2 * time.Minute // the run takes one minute
	for name, r := range map[string]ledger.Record{
		"opened":               {OpenedAt: later},
		"opened before":        {OpenedAt: -later},
		"closed":               {ClosedAt: later},
		"last message":         {LastAt: later},
		"silence":              {SilentFrom: later},
		"finding":              {Findings: []ledger.Finding{{Kind: ledger.KindLost, At: math.MaxInt64}}},
		"outage":               {Outages: []ledger.Outage{{From: 1, To: later}}},
		"longest outage":       {Longest: ledger.Outage{From: -later, To: 1}},
		"last outage":          {LastOutage: &ledger.Outage{From: 1, To: later}},
		"refusal":              {Refusals: []ledger.Refusal{{First: 1, Last: later}}},
		"refusal in an outage": {Outages: []ledger.Outage{{From: 1, To: 2, Refusals: []ledger.Refusal{{First: later, Last: later}}}}},
		"stream":               {Spans: []ledger.Span{{From: 1, To: later}}},
		"corrupted":            {UnplacedAt: []ledger.Instant{later}},
		"cut":                  {Cuts: &ledger.Cuts{List: []ledger.Cut{{At: 1, NextAt: later}}}},
	} {
		s := newEmptyShard(planFor(1, 2), 1)
		r.ID = "a"
		s.Connections = []ledger.Record{r}
		_, err := reread(t, s)
		require.EqualError(t, err, "impossible time of the client a: it is outside of the run", name)
	}
	s := newEmptyShard(planFor(1, 2), 1)
	s.Connections = []ledger.Record{{ID: "a", OpenedAt: 1, ClosedAt: time.Minute + slack, LastOutage: &ledger.Outage{From: 1, To: time.Minute}}}
	_, err := reread(t, s)
	require.NoError(t, err)
}

// A custom trend may have any values, so the start of its samples may be any time.
func TestMetricsOutsideOfTheRunAreRejected(t *testing.T) {
	t.Parallel()
	in := newEmptyShard(planFor(1, 2), 1).Runner.StartedUS
	for name, c := range map[string]struct {
		metric  Metric
		isValid bool
	}{
		"no times":            {Metric{Name: "a"}, true},
		"in the run":          {Metric{Name: "a", FirstUS: in, LastUS: in + 60e6}, true},
		"first of a counter":  {Metric{Name: "a", FirstUS: 1, LastUS: in}, false},
		"first of requests":   {Metric{Name: RequestDuration, Trend: NewHistogram(), Undelayed: NewHistogram(), FirstUS: 1, LastUS: in}, false},
		"first of a trend":    {Metric{Name: "a", Trend: NewHistogram(), FirstUS: 1, LastUS: in}, true},
		"last in 1970":        {Metric{Name: "a", Trend: NewHistogram(), FirstUS: 1, LastUS: 1}, false},
		"last in the future":  {Metric{Name: "a", FirstUS: in, LastUS: math.MaxInt64}, false},
		"first in the future": {Metric{Name: "a", FirstUS: math.MaxInt64, LastUS: in}, false},
	} {
		s := newEmptyShard(planFor(1, 2), 1)
		s.Metrics = []Metric{c.metric}
		if _, err := reread(t, s); c.isValid {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, "is outside of the run", name)
		}
	}
}
