package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// newClient returns the record of a client whose noops were due one second apart. Each "-" in arrived is a lost noop.
// The client requests the end of its stream when tail has passed since the last noop was due.
func newClient(arrived string, tail time.Duration) *fakeservice.NoopClient {
	start := time.Now()
	d := &fakeservice.NoopClient{Client: fakeservice.Client{ID: "a", Spans: []fakeservice.OpenSpan{{From: start}}}, First: start.Add(time.Second)}
	for i, c := range arrived {
		due := start.Add(time.Duration(i+1) * time.Second)
		n := fakeservice.Noop{Slot: i + 1, Number: uint64(i + 1), Due: due}
		if c != '-' {
			n.At, n.Copies = due, 1
		}
		d.Noops = append(d.Noops, n)
	}
	d.EndRequestedAt = d.Noops[len(d.Noops)-1].Due.Add(tail)
	d.Last().To = d.EndRequestedAt.Add(time.Millisecond)
	return d
}

func TestExpectedLoss(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		ids     string
		ledger  bool
		arrived string
		tail    time.Duration
		want    span
	}{
		"in the middle":                                {fakeservice.IDsNone, false, "00-00", second / 2, exactCount(1)},
		"the last, long before the end":                {fakeservice.IDsNone, false, "0000-", second * 8 / 10, exactCount(1)},
		"the last, just before the end, by the clock":  {fakeservice.IDsNone, false, "0000-", second / 10, span{0, 1}},
		"the last, at the tolerance":                   {fakeservice.IDsNone, false, "0000-", second / 2, span{0, 1}},
		"the last, just before the end, by the ledger": {fakeservice.IDsNumbers, true, "0000-", second / 10, exactCount(1)},
		"the first, by number":                         {fakeservice.IDsNumbers, false, "-0000", second / 2, exactCount(1)},
		"the first, by the clock":                      {fakeservice.IDsNone, false, "-0000", second / 2, exactCount(1)},
		"the last but one":                             {fakeservice.IDsNone, false, "000-0", second / 100, exactCount(1)},
	} {
		sc := &scenario{Plan: plan{Interval: 1, LateMS: 1000}, Service: &fakeservice.ServiceSpec{IDs: c.ids, Ledger: c.ledger, Schedule: fakeservice.Schedule{Interval: second}}}
		require.Equal(t, c.want, sc.expectMissed(newClient(c.arrived, c.tail)), name)
	}
}

func TestStreamOpenedAtTheEndMayNotCount(t *testing.T) {
	for age, want := range map[time.Duration]span{time.Second: exactCount(2), hubSlack / 2: {1, 2}} {
		d := newClient("00", time.Second)
		d.Spans = append(d.Spans, fakeservice.OpenSpan{}, fakeservice.OpenSpan{From: d.LastExpected().Add(-age), To: d.Last().To})
		require.Equal(t, want, reconnectCount(&d.Client, d.LastExpected()), age)
	}
}

func TestCloseAfterAnIdleTimeoutCountsAsDropped(t *testing.T) {
	for tail, want := range map[time.Duration]span{1500 * time.Millisecond: {}, 2510 * time.Millisecond: {0, 1}, 4 * time.Second: exactCount(1)} {
		sc := &scenario{Plan: plan{Interval: 1}, Service: &fakeservice.ServiceSpec{Schedule: fakeservice.Schedule{Interval: time.Second}}}
		require.Equal(t, want, sc.expectNoopDrop(newClient("00", tail)), tail)
	}
}

func TestNoopSentAfterTheEndWasRequestedMayCount(t *testing.T) {
	sc := &scenario{Plan: plan{Interval: 1}, Service: &fakeservice.ServiceSpec{Schedule: fakeservice.Schedule{Interval: time.Second}}}
	d := newClient("000", -time.Millisecond)
	for i := range d.Noops {
		d.Noops[i].Corrupt, d.Noops[i].Copies = true, 2
	}
	sums := sc.expectNoopClient(d)
	require.Equal(t, span{2, 3}, sums["corrupted"])
	require.Equal(t, span{2, 3}, sums["duplicated"])
}

func TestPassWithALossIsAMissedFault(t *testing.T) {
	e := verdictExpectation{Outcomes: []verdict.Outcome{verdict.Fail}, Counts: counts{"missed": exactCount(1)}}
	v := &verdict.Verdict{}
	v.Verdict = verdict.Pass
	differences, undecided := e.compare(v)
	require.NotEmpty(t, differences)
	require.False(t, undecided, "a pass without undetectable losses must not be undecided")
	e.Undetectable, v.Evidence.Undetectable = 2, 1
	_, undecided = e.compare(v)
	require.False(t, undecided, "a pass that lists too few undetectable losses must not be undecided")
	v.Evidence.Undetectable = 2
	differences, undecided = e.compare(v)
	require.Empty(t, differences)
	require.True(t, undecided, "a pass that lists the losses as undetectable must be undecided")
}
