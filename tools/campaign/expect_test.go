package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// truth is a device whose noops came an interval apart; those of which the text has a "-" were lost.
func truth(every time.Duration, arrived string, tail time.Duration) *device {
	began := time.Now()
	d := &device{client: client{id: "a", spans: []openSpan{{from: began}}}, first: began.Add(every)}
	for i, c := range arrived {
		due := began.Add(time.Duration(i+1) * every)
		n := noop{slot: i + 1, number: uint64(i + 1), due: due}
		if c != '-' {
			n.at, n.copies = due, 1
		}
		d.noops = append(d.noops, n)
	}
	d.asked = d.noops[len(d.noops)-1].due.Add(tail)
	d.last().to = d.asked.Add(time.Millisecond)
	return d
}

func TestWhatIsExpectedOfALoss(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		ids     string
		ledger  bool
		arrived string
		tail    time.Duration
		want    span
	}{
		"in the middle":                      {idsNone, false, "00-00", second / 2, exactly(1)},
		"the last, long ago":                 {idsNone, false, "0000-", second * 8 / 10, exactly(1)},
		"the last, just now, by the clock":   {idsNone, false, "0000-", second / 10, span{0, 1}},
		"the last, at the edge":              {idsNone, false, "0000-", second / 2, span{0, 1}},
		"the last, just now, by the ledger":  {idsNumbers, true, "0000-", second / 10, exactly(1)},
		"the first, by number":               {idsNumbers, false, "-0000", second / 2, exactly(1)},
		"the first, by the clock":            {idsNone, false, "-0000", second / 2, exactly(1)},
		"the last but one, however it ended": {idsNone, false, "000-0", second / 100, exactly(1)},
	} {
		sc := &scenario{Plan: plan{Interval: 1, LateMS: 1000}, Service: &serviceSpec{IDs: c.ids, Ledger: c.ledger, Schedule: schedule{Every: second}}}
		require.Equal(t, c.want, sc.expectMissed(truth(second, c.arrived, c.tail)), name)
	}
}

func TestAStreamThatOpensAtTheEndMayNotBeSeenByItsClient(t *testing.T) {
	for age, want := range map[time.Duration]span{time.Second: exactly(2), hubSlack / 2: {1, 2}} {
		d := truth(time.Second, "00", time.Second)
		d.spans = append(d.spans, openSpan{}, openSpan{from: d.over().Add(-age), to: d.last().to})
		require.Equal(t, want, d.reconnected(d.over()), age)
	}
}

func TestAPassDespiteALossIsAMissedFault(t *testing.T) {
	e := expected{Outcomes: []verdict.Outcome{verdict.Fail}, Counts: counts{"missed": exactly(1)}}
	j := &verdict.Verdict{}
	j.Verdict = verdict.Pass
	differences, undecided := e.compare(j)
	require.NotEmpty(t, differences)
	require.False(t, undecided)
	e.Hidden, j.Evidence.CouldHide = 2, 1
	_, undecided = e.compare(j)
	require.False(t, undecided, "it says that less was hidden")
	j.Evidence.CouldHide = 2
	differences, undecided = e.compare(j)
	require.Empty(t, differences)
	require.True(t, undecided)
}
