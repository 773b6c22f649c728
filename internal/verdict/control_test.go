package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// withControlGroups adds a control group of 20 streams to both runners of a run, and sets MAX_LATE to 0. The groups
// were on time, except for the group of the first runner at the given moments.
func withControlGroups(m *shard.Merged, moments ...shard.ControlMoment) {
	m.Plan.MaxLate = 0
	group := shard.Control{URL: "http://127.0.0.1:1", Streams: 20, LateMS: 1000, Opened: 20, ControlCounts: shard.ControlCounts{Expected: 72_000, Received: 72_000, LongestUS: 9000}}
	for i := range m.Runners {
		m.Runners[i].ControlGroup = &shard.RunnerControl{Control: group}
	}
	m.Runners[0].ControlGroup.Moments = moments
	sum := group
	for _, moment := range moments {
		sum.LongestUS = max(sum.LongestUS, moment.Longest.Microseconds())
		if moment.Longest > time.Second {
			sum.Late++
		}
	}
	m.Control = &sum
}

// minute returns a moment in the given minute of the run, in which the given number of noops were late by the given
// time.
func minute(n int, late int, by time.Duration) shard.ControlMoment {
	h := shard.NewHistogram()
	for range late {
		h.Record(by)
	}
	return shard.ControlMoment{At: time.UnixMicro(1_700_000_000_000_000).Add(time.Duration(n) * time.Minute), Late: late, Lateness: h.Pack()}
}

func TestGeneratorExplainsLateness(t *testing.T) {
	t.Parallel()
	group := func(at shard.ControlMoment, longest time.Duration) shard.ControlMoment {
		at.Longest = longest
		return at
	}
	silent := func(at shard.ControlMoment, stall time.Duration) shard.ControlMoment {
		at.Silent, at.Stall = true, stall
		return at
	}
	at := func(moments ...shard.ControlMoment) []shard.ControlMoment { return moments }
	stall := func(us int64) func(m *shard.Merged) {
		return func(m *shard.Merged) { m.Runners[0].StallMaxUS = us }
	}
	withoutSecondGroup := func(stalled int, us int64) func(m *shard.Merged) {
		return func(m *shard.Merged) { m.Runners[1].ControlGroup, m.Runners[stalled].StallMaxUS = nil, us }
	}
	withoutGroups := func(edit func(m *shard.Merged)) func(m *shard.Merged) {
		return func(m *shard.Merged) {
			m.Control, m.Runners[0].ControlGroup, m.Runners[1].ControlGroup = nil, nil, nil
			edit(m)
		}
	}
	withoutEvents := func(err string, us int64) func(m *shard.Merged) {
		return func(m *shard.Merged) {
			for i := range m.Runners {
				m.Runners[i].ControlGroup.Received = 0
			}
			m.Control.Received, m.Control.Error, m.Runners[0].StallMaxUS = 0, err, us
		}
	}
	const second = time.Second
	oneMuchLater := group(minute(1, 3, 0), 3*second)
	h := shard.NewHistogram()
	for _, by := range []time.Duration{2 * second, 2 * second, 9 * second} {
		h.Record(by)
	}
	oneMuchLater.Lateness = h.Pack()
	nextBucket := group(minute(1, 0, 0), 3*second)
	nextBucket.At = nextBucket.At.Add(shard.BucketWidth)
	for name, c := range map[string]struct {
		moments   []shard.ControlMoment // of the group of runner 1
		late      int                   // number of late noops
		edit      func(m *shard.Merged) // nil: none
		want      Outcome
		saturated bool
		wantText  string
	}{
		"the group was on time": {at(minute(1, 3, 2*second)), 3, nil, Fail, false,
			"all 3 late messages arrived while the control group was on time, or much less late: the load generator did not delay them (0 of 72,000 events of the control group were late)"},
		"the group was on time, although the runner stalled": {at(minute(1, 3, 2*second)), 3, stall(8e6), Fail, false, "the load generator did not delay them"},
		"the group was late too": {at(group(minute(1, 3, 2*second), 3*second)), 3, nil, Invalid, true,
			"all 3 late messages arrived while the control group was late too, by up to 3 s, so the load generator may be the cause (1 of 72,000 events of the control group was late)"},
		"the group was late too, across a network": {at(group(minute(1, 3, 2*second), 3*second)), 3, func(m *shard.Merged) { m.Control.Remote = true }, Invalid, true,
			"so the load generator or the network may be the cause"},
		"the group was late at another time": {at(group(minute(1, 0, 0), 3*second), minute(2, 3, 2*second)), 3, nil, Fail, true, "arrived while the control group was on time"},
		"the group was much less late":       {at(group(minute(1, 3, 5*second), 1500*time.Millisecond)), 3, nil, Fail, true, "arrived while the control group was on time"},
		"the group was slightly less late":   {at(group(minute(1, 3, 3900*time.Millisecond), 3*second)), 3, nil, Invalid, true, "all 3 late messages arrived while the control group was late too"},
		"one message was much later than the group": {at(oneMuchLater), 3, nil, Fail, true,
			"2 of 3 late messages arrived while the control group was late too, by up to 3 s, so the load generator may be the cause; 1 of 3 late messages arrived while"},
		"the group was late in the next bucket": {at(minute(1, 3, 2*second), nextBucket), 3, nil, Invalid, true, "was late too"},
		"some messages were late with the group, some without": {at(group(minute(1, 3, 2*second), 3*second), minute(9, 2, 2*second)), 5, nil, Fail, true,
			"3 of 5 late messages arrived while the control group was late too, by up to 3 s, so the load generator may be the cause; 2 of 5 late messages arrived while the control group was on time, or much less late"},
		"as many messages were late without the group as MAX_LATE allows": {at(group(minute(1, 3, 2*second), 3*second), minute(9, 2, 2*second)), 5,
			func(m *shard.Merged) { m.Plan.MaxLate = 2 }, Invalid, true, "3 of 5 late messages"},
		"the group was inconclusive, and no runner stalled": {at(silent(minute(1, 3, 2*second), 0)), 3, nil, Fail, false,
			"all 3 late messages arrived while the control group was inconclusive, so the stalls of the runner decide"},
		"the group was inconclusive, and the runner stalled": {at(silent(minute(1, 3, 2*second), 2*second)), 3, nil, Invalid, true, "was inconclusive"},
		"the group was on time, later it was inconclusive, and no runner stalled": {at(minute(1, 2, 2*second), silent(minute(5, 2, 2*second), 0)), 4,
			func(m *shard.Merged) { m.Plan.MaxLate = 3 }, Fail, false, "2 of 4 late messages arrived while the control group was inconclusive"},
		"the group of another runner was late": {at(minute(1, 3, 2*second)), 3, func(m *shard.Merged) {
			m.Runners[1].ControlGroup.Moments = at(group(minute(1, 0, 0), 3*second))
		}, Fail, true, "the load generator did not delay them"},
		"the group was late, and no message was": {at(group(minute(1, 0, 0), 3*second)), 0, nil, Pass, true,
			"the load generator was saturated: the control group was up to 3 s late (at 22:14:20 UTC); times may be up to 3 s too long; counts are not affected"},
		"the group received no event, and a runner stalled":  {nil, 3, withoutEvents("connection refused", 8e6), Invalid, true, "the control group received no event (connection refused)"},
		"the group received no event, and no runner stalled": {nil, 3, withoutEvents("", 0), Fail, false, "the control group received no event, so only stalls"},
		"the group has too few streams for the limit": {at(minute(1, 3, 2*second)), 3, func(m *shard.Merged) {
			m.Runners[0].ControlGroup.Streams, m.Runners[1].ControlGroup.Streams, m.Runners[0].StallMaxUS = 1, 1, 8e6
		}, Invalid, true, "raise CONTROL or LATE_MS"},
		"one runner has a group, and the other stalled":                          {nil, 3, withoutSecondGroup(1, 8e6), Invalid, false, ""},
		"one runner has a group and stalled, and the other did not":              {nil, 3, withoutSecondGroup(0, 8e6), Fail, false, ""},
		"one runner has a group, and the other stalled for over half of LATE_MS": {nil, 3, withoutSecondGroup(1, 600e3), Invalid, false, ""},
		"the group was on time, although the runners waited for a core":          {nil, 3, func(m *shard.Merged) { m.Runners[0].RunDelaySeconds = 3600 }, Fail, true, "d-0 received noop 7 late"},
		"a numbered noop was lost while the group was late": {at(group(minute(1, 3, 2*second), 3*second)), 3, func(m *shard.Merged) {
			m.Connections.Edit(1).Received, m.Connections.Edit(1).Lost = noopsEach-1, 1
		}, Fail, true, "was late too"},
		"no group, the generator was on time, and messages were late": {nil, 3, withoutGroups(func(*shard.Merged) {}), Fail, false, ""},
		"no group, and the generator stalled":                         {nil, 0, withoutGroups(stall(8e6)), Pass, true, "times may be up to 8 s too long"},
		"no group, the generator stalled, and messages were late":     {nil, 3, withoutGroups(stall(8e6)), Invalid, true, "times may be up to 8 s too long"},
		"no group, the generator waited for a core in short periods, and messages were late": {nil, 3, withoutGroups(func(m *shard.Merged) {
			m.Runners[0].RunDelaySeconds = 3600 // of the 2 × 3600 s of both runners
		}), Fail, true, "runner threads waited 3600.0 s in total (50 % of the time)"},
		"no group, and the generator waited for a core, but used one for longer": {nil, 0, withoutGroups(func(m *shard.Merged) {
			m.Runners[0].RunDelaySeconds, m.Runners[0].CPUSeconds = 3600, 3700
		}), Pass, false, ""},
		// The check names the wait, and not a stall below its limit.
		"no group, and the generator waited for a core": {nil, 0, withoutGroups(func(m *shard.Merged) {
			m.Runners[0].RunDelaySeconds, m.Runners[0].StallMaxUS = 1800, 6000
		}), Pass, true, "runner threads waited 1800.0 s in total (25 % of the time) for a CPU that other processes used, and ran for 72.0 s; times may be up to 6 ms too long; counts are not affected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRun()
			withControlGroups(m, c.moments...)
			for range c.late {
				addFault(&m.Connections.Edit(0).Record, ledger.KindLate, 1)
			}
			if c.edit != nil {
				c.edit(m)
			}
			v := requireOutcome(t, c.want, judgeSoak(m, server, Evidence{}))
			require.Equal(t, c.saturated, v.Generator.Saturated)
			require.Contains(t, strings.Join(append(v.Reasons, v.Warnings...), "\n"), c.wantText)
			require.Equal(t, v, judgeSoak(m, server, Evidence{}), "a second judgment must give the same verdict")
		})
	}
}

// If a runner stalled and was then terminated, the last events of its streams and its control group are in the bucket
// before the stall.
func TestFrozenRunnerIsJudgedByItsControlGroup(t *testing.T) {
	t.Parallel()
	for stall, want := range map[time.Duration]Outcome{33 * time.Second: Invalid, 0: Fail} {
		m, _ := cleanRun()
		r := &m.Connections.Edit(0).Record
		r.Numbered, r.Received, r.Unsent, r.Unlisted, r.Late = false, noopsEach-1, 1, 2, 2
		for range 4 {
			addFault(r, ledger.KindLate, 1)
		}
		r.Findings = append(r.Findings, ledger.Finding{Kind: ledger.KindUnsent, Count: 1, At: time.Minute})
		withControlGroups(m, shard.ControlMoment{At: m.Runners[0].At(24 * time.Second), Longest: stall, Stall: stall})
		m.Plan.MaxLate = -1
		v := requireOutcome(t, want, judgeSoak(m, nil, Evidence{}))
		require.Equal(t, want == Invalid, check(t, v, "noops missed").ExplainedBy == SignalControl)
	}
}

// A late control group can explain faults that depend on the interval, if its delay was long enough. It does not
// explain faults that numbers or the server's ledger show.
func TestLateControlGroupExplainsOnlyFaultsByInterval(t *testing.T) {
	t.Parallel()
	const second = time.Second
	byInterval := func(kind ledger.Kind, count uint64) func(r *ledger.Record) {
		return func(r *ledger.Record) {
			r.Numbered = false
			addFault(r, kind, count)
		}
	}
	for name, c := range map[string]struct {
		fault             func(r *ledger.Record)
		short, sufficient time.Duration // a delay that does not explain the fault, and one that does; 0: none does
	}{
		"silent for 37.5 s, of which 22.5 s may pass between two noops": {func(r *ledger.Record) {
			addFault(r, ledger.KindDropped, 1)
			r.Reason, r.Findings[0].Note, r.LastAt = "idle", "idle", r.Findings[0].At-37500*time.Millisecond
		}, 14 * second, 16 * second},
		"one slot stayed empty":                             {byInterval(ledger.KindUnsent, 1), 7 * second, 8 * second},
		"ten slots stayed empty":                            {byInterval(ledger.KindUnsent, 10), 140 * second, 145 * second},
		"the last noop, due 2 s before the end, is missing": {byInterval(ledger.KindTail, 1), second / 3, 2 * second},
		"the last two noops are missing":                    {byInterval(ledger.KindTail, 2), 14 * second, 15 * second},
		"one slot stayed empty, and a late noop is not listed": {func(r *ledger.Record) {
			byInterval(ledger.KindUnsent, 1)(r)
			r.Unlisted = 1
		}, 7 * second, 8 * second},
		"two slots stayed empty, and one is not listed": {func(r *ledger.Record) {
			byInterval(ledger.KindUnsent, 1)(r)
			r.Received, r.Unsent, r.Unlisted = noopsEach-2, 2, 1
		}, 20 * second, 0},
		"reset":                {func(r *ledger.Record) { addFault(r, ledger.KindDropped, 1) }, 20 * second, 0},
		"a number was skipped": {func(r *ledger.Record) { addFault(r, ledger.KindLost, 1) }, 20 * second, 0},
	} {
		judge := func(at, delay time.Duration) *Verdict {
			m, _ := cleanRun()
			c.fault(&m.Connections.Edit(0).Record)
			withControlGroups(m, shard.ControlMoment{At: m.Runners[0].At(at), Longest: delay})
			return judgeSoak(m, nil, Evidence{})
		}
		requireOutcome(t, Fail, judge(90*second, c.short), name, c.short)
		if c.sufficient > 0 {
			requireOutcome(t, Invalid, judge(90*second, c.sufficient), name, c.sufficient)
		}
		requireOutcome(t, Fail, judge(90*second-time.Hour, 150*second), name, "the group was late an hour before")
	}
}

func TestControlGroupAttributesOutages(t *testing.T) {
	t.Parallel()
	for late, want := range map[time.Duration]Outcome{40 * time.Second: Invalid, 5 * time.Second: Fail, 0: Fail} {
		m, server := cleanRun()
		m.Plan.Reconnect = true
		m.Runners[0].StallMaxUS = 3600e6
		m.Connections.Edit(0).Longest = ledger.Outage{From: time.Minute, To: time.Minute + 40*time.Second}
		withControlGroups(m, shard.ControlMoment{At: m.Runners[0].At(time.Minute + 40*time.Second), Longest: late})
		requireOutcome(t, want, judgeSoak(m, server, Evidence{}), late)
	}
}

// If the generator was late, a stream may only seem to have exceeded its lifetime.
func TestControlGroupAttributesOverdueStreams(t *testing.T) {
	t.Parallel()
	const ended = 20 * time.Second
	at := func(after, longest time.Duration) []shard.ControlMoment {
		return []shard.ControlMoment{{At: time.UnixMicro(1_700_000_000_000_000).Add(after), Longest: longest}}
	}
	for name, c := range map[string]struct {
		group   bool
		moments []shard.ControlMoment
		stall   time.Duration // of the stream's runner, or, if negative, of the other runner
		want    Outcome
	}{
		"the group was late when the stream ended":              {true, at(ended, 3*time.Second), 0, Invalid},
		"the group was late at another time":                    {true, at(ended-15*time.Second, 3*time.Second), 3 * time.Second, Fail},
		"the group was on time, and a runner stalled":           {true, nil, 3 * time.Second, Fail},
		"there was no group, and the runner stalled":            {false, nil, 3 * time.Second, Invalid},
		"there was no group, and the runner stalled for 600 ms": {false, nil, 600 * time.Millisecond, Invalid},
		"there was no group, and the runner stalled for 400 ms": {false, nil, 400 * time.Millisecond, Fail},
		"there was no group, and another runner stalled":        {false, nil, -3 * time.Second, Fail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPublishedRun()
			p.change = func(shards []*shard.Shard) {
				for i, s := range shards {
					s.Service.LifetimeS = 10
					if c.group {
						s.Runner.ControlGroup = &shard.RunnerControl{Control: shard.Control{URL: "http://127.0.0.1:1", Streams: 20, LateMS: 1000, Opened: 20, ControlCounts: shard.ControlCounts{Expected: 600, Received: 600}}}
					}
					if i == 0 {
						s.Connections[0].Overdue = 1
						s.Connections[0].Findings = append(s.Connections[0].Findings, ledger.Finding{Kind: ledger.KindOverdue, At: ended, Lateness: 12 * time.Second})
					}
				}
				shards[0].Runner.StallMaxUS = max(c.stall, 0).Microseconds()
				shards[1].Runner.StallMaxUS = max(-c.stall, 0).Microseconds()
				if c.group {
					shards[0].Runner.ControlGroup.Moments = c.moments
				}
			}
			v := requireOutcome(t, c.want, p.judge(t))
			require.False(t, check(t, v, "streams open for longer than their lifetime").Pass)
		})
	}
}
