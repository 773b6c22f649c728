package verdict

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// newCutRun returns a publishedRun whose client 0 is disconnected at 10.2 s, after message 10. The client reconnects at
// 11.7 s.
func newCutRun() *publishedRun {
	p := newPublishedRun()
	p.cfg.Cuts, p.plan.Reconnect, p.plan.CutsPerSecond, p.plan.CutShares, p.shapeAt = true, true, .1, "rst", 11
	p.shape = cutStream("rst", true, false)
	p.changeEach(func(s *shard.Shard) {
		s.Service.Resume, s.Service.Gap = "Last-Event-ID", "the header Last-Event-ID: earliest"
	})
	return p
}

// cutStream returns a function that disconnects and reopens stream 0.
func cutStream(kind string, resumes, announced bool) func(int, *ledger.Ledger) {
	return func(stream int, l *ledger.Ledger) {
		if stream != 0 {
			return
		}
		l.Cut(10200*time.Millisecond, kind, false)
		l.Closed(10200*time.Millisecond, ledger.ReasonCut, false, true)
		if announced {
			l.Announced(11650 * time.Millisecond)
		}
		reopen(l, 11600*time.Millisecond, 11700*time.Millisecond, resumes)
	}
}

// replaceMessage returns a function that delivers other messages in place of one message on stream 0.
func replaceMessage(number uint64, replacements ...uint64) func(int, uint64) []uint64 {
	return replaceMessages(0, map[uint64][]uint64{number: replacements})
}

func TestCutWithoutLossPasses(t *testing.T) {
	t.Parallel()
	v := newCutRun().judge(t)
	require.Equal(t, Pass, v.Verdict, v.Reasons)
	require.Len(t, v.Cuts, 1)
	c := v.Cuts[0]
	require.Equal(t, []int{1, 1, 1, 1, 1}, []int{c.Planned, c.Count, c.Ended, c.Resumed, c.WithoutLoss})
	require.Zero(t, c.Lost+c.Duplicated+c.Announced)
	require.Zero(t, v.Messages.NotExpected)
	require.Equal(t, "1 stream was disconnected, 1 resumed with Last-Event-ID, and no message was lost or duplicated", v.Reasons[1])
	for name, counts := range map[string][2]string{
		"streams disconnected as planned": {"1", "1"}, "streams resumed after a disconnect": {"1", "1"}, "disconnects with lost or repeated messages": {"0", "0"},
	} {
		got := check(t, v, name)
		require.Equal(t, counts, [2]string{got.Limit, got.Actual}, name)
	}
}

// Each fault of a resume counts at the cut before the resume.
func TestResumeOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		change           func(p *publishedRun)
		want             Outcome
		lost, duplicated uint64
		announced        uint64
		withoutLoss      int
		reason           string
	}{
		{"the message in flight at the cut is lost", func(p *publishedRun) { p.deliver = replaceMessage(11) }, Fail, 1, 0, 0, 0, "after message 10: 1 message was lost"},
		{"the stream continues with a later message", func(p *publishedRun) {
			p.lose(func(stream int, n uint64) bool { return stream == 0 && (n == 11 || n == 12) })
		}, Fail, 2, 0, 0, 0, "2 messages were lost"},
		{"a message between the replay and the later messages is lost", func(p *publishedRun) { p.deliver = replaceMessage(12) }, Fail, 1, 0, 0, 0, "1 message was lost"},
		{"no message arrives until long after the reconnect", func(p *publishedRun) {
			p.lose(func(stream int, n uint64) bool { return stream == 0 && n > 10 && n < 16 })
		}, Fail, 5, 0, 0, 0, "5 messages were lost"},
		{"one is lost and another one arrives twice", func(p *publishedRun) {
			p.deliver = replaceMessages(0, map[uint64][]uint64{11: nil, 12: {12, 12}})
		}, Fail, 1, 1, 0, 0, "1 of 1 disconnect led to faults: 1 message was lost, 1 received twice"},
		{"one arrives twice next to an allowed announced gap", func(p *publishedRun) {
			p.plan.AllowGaps, p.deliver, p.shape = true, replaceMessage(12, 12, 12), cutStream("rst", true, true)
		}, Fail, 0, 1, 1, 0, "0 messages were lost, 1 received twice; the service announced 1 gap by the header Last-Event-ID: earliest"},
		{"a message long after the cut is lost", func(p *publishedRun) { p.deliver = replaceMessage(18) }, Fail, 0, 0, 0, 1, "s-0 missed message 18"},
		{"the last before the cut arrives again", func(p *publishedRun) { p.deliver = replaceMessage(11, 10, 11) }, Fail, 0, 1, 0, 0, "0 messages were lost, 1 received twice, and the stream continued with 10"},
		{"one right after the reconnect arrives twice", func(p *publishedRun) { p.deliver = replaceMessage(12, 12, 12) }, Fail, 0, 1, 0, 0, "1 received twice"},
		{"all messages are repeated", func(p *publishedRun) { p.deliver = replaceMessage(11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) }, Fail, 0, 10, 0, 0, "10 received twice, and the stream continued with 1"},
		{"a gap is announced", func(p *publishedRun) {
			p.deliver, p.shape = replaceMessage(11), cutStream("rst", true, true)
		}, Fail, 1, 0, 1, 0, "and the service announced a gap by the header Last-Event-ID: earliest"},
		{"a gap is announced, and that is allowed", func(p *publishedRun) {
			p.plan.AllowGaps, p.deliver, p.shape = true, replaceMessage(11), cutStream("rst", true, true)
		}, Pass, 1, 0, 1, 0, "1 message is missing in announced gaps"},
		{"a message after an announced gap is lost", func(p *publishedRun) {
			p.plan.AllowGaps, p.deliver, p.shape = true, replaceMessage(12), cutStream("rst", true, true)
		}, Fail, 1, 0, 1, 0, "1 of 1 disconnect led to faults: 1 message was lost, 0 received twice; the service announced 1 gap"},
		{"a gap that is not announced is not allowed", func(p *publishedRun) {
			p.plan.AllowGaps, p.deliver = true, replaceMessage(11)
		}, Fail, 1, 0, 0, 0, "1 message was lost"},
		{"a loss long after an announced gap is not allowed", func(p *publishedRun) {
			p.plan.AllowGaps, p.deliver, p.shape = true, replaceMessage(18), cutStream("rst", true, true)
		}, Fail, 0, 0, 1, 0, "s-0 missed message 18"},
		{"the client had no id to resume from", func(p *publishedRun) { p.shape = cutStream("rst", false, false) }, Invalid, 0, 0, 0, 0, "there was no id from which the client could resume"},
		{"no stream was disconnected", func(p *publishedRun) { p.shape = func(int, *ledger.Ledger) {} }, Invalid, 0, 0, 0, 0, "0 of 1 disconnect of kind rst was made"},
		{"a stream was disconnected in another way", func(p *publishedRun) { p.shape = cutStream("fin", true, false) }, Invalid, 0, 0, 0, 0, "0 of 1 disconnect of kind rst was made"},
		{"no message arrived after the cut", func(p *publishedRun) {
			p.shapeAt = 20
			p.lose(func(stream int, n uint64) bool { return stream == 0 && n == 20 })
		}, Fail, 0, 0, 0, 0, "s-0 missed message 20"}, // message 20 was sent long after the reconnect
		{"messages are repeated, and the description allows it", func(p *publishedRun) {
			p.cfg.Repeats, p.deliver = true, replaceMessage(11, 9, 10, 11)
		}, Pass, 0, 0, 0, 1, "2 messages were received twice, which the description allows"},
		{"messages arrive in any order, and the description allows it", func(p *publishedRun) {
			p.cfg.AnyOrder, p.deliver = true, replaceMessages(0, map[uint64][]uint64{9: nil, 11: {9, 11}})
			p.changeEach(func(s *shard.Shard) { s.Service.Resume, s.Service.AnyOrder = "Last-Event-ID", true })
		}, Pass, 0, 0, 0, 1, "no message was lost or duplicated"},
		{"a message of the outage is missing, and the service does not resume", func(p *publishedRun) {
			p.deliver, p.shape = replaceMessage(11), cutStream("rst", false, false)
			p.changeEach(func(s *shard.Shard) { s.Service.Resume = "none" })
		}, Pass, 0, 0, 0, 1, "the service does not resume"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newCutRun()
			c.change(p)
			v := requireOutcome(t, c.want, p.judge(t))
			require.Contains(t, strings.Join(v.Reasons, "\n"), c.reason)
			got := v.Cuts[slices.IndexFunc(v.Cuts, func(c Cuts) bool { return c.Kind == "rst" })]
			require.Equal(t, []uint64{c.lost, c.duplicated, c.announced}, []uint64{got.Lost, got.Duplicated, got.Announced})
			require.Equal(t, c.withoutLoss, got.WithoutLoss)
			if c.want == Pass {
				require.Zero(t, v.Messages.Missed)
			} else {
				require.GreaterOrEqual(t, v.Messages.Missed, c.lost)
			}
		})
	}
}

// Noops have no publisher: a loss at a disconnect is a gap in their numbers.
func TestNoopsAreCountedByNumberAcrossACut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cut    ledger.Cut
		gaps   bool
		want   Outcome
		lost   uint64
		reason string
	}{
		"the next one arrives":                                  {ledger.Cut{LastNumber: 10, Next: 11}, false, Pass, 0, "1 stream was disconnected, 1 resumed with Last-Event-ID, and no message was lost"},
		"the first one arrives":                                 {ledger.Cut{LastNumber: 0, Next: 1}, false, Pass, 0, "no message was lost"},
		"none had arrived before":                               {ledger.Cut{LastNumber: 0, Next: 5}, false, Pass, 0, "no message was lost"},
		"the client pauses":                                     {ledger.Cut{LastNumber: 10, Next: 11, Kind: "pause"}, false, Pass, 0, "1 stream was disconnected or paused, 0 ended and resumed with Last-Event-ID"},
		"two are skipped":                                       {ledger.Cut{LastNumber: 10, Next: 13}, false, Fail, 2, "after noop 10: 2 noops were lost, 0 received twice"},
		"two are skipped, and one arrives later":                {ledger.Cut{LastNumber: 10, Next: 13, Filled: 1}, false, Fail, 1, "after noop 10: 1 noop was lost, 0 received twice"},
		"the service counts from 1 again":                       {ledger.Cut{LastNumber: 10, Next: 1}, false, Fail, 0, "0 noops were lost, 0 received twice, and the stream continued with 1"},
		"the service counts from 1 again and announces the gap": {ledger.Cut{LastNumber: 10, Next: 1, Announced: 1}, true, Fail, 0, "and the service announced a gap"},
		"the service announces a gap":                           {ledger.Cut{LastNumber: 10, Next: 13, Announced: 1}, false, Fail, 2, "2 noops were lost, 0 received twice, and the service announced a gap"},
		"the ids do not count":                                  {ledger.Cut{Kind: "rst", Lost: true}, false, Invalid, 0, "(rst): its noops had no ids 1, 2, 3 …, so it is unknown whether it resumed"},
		"the last one arrives again, and then others":           {ledger.Cut{LastNumber: 10, Next: 10, Duplicated: 1}, false, Fail, 0, "1 received twice, and the stream continued with 10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRun()
			m.Plan.Reconnect, m.Plan.Seconds, m.Plan.NoopInterval, m.Plan.CutsPerSecond, m.Plan.CutShares, m.Plan.AllowGaps = true, 3600, 15, .0003, cmp.Or(c.cut.Kind, "rst"), c.gaps
			require.Len(t, m.Plan.PlannedCuts(), 1)
			c.cut.At, c.cut.ReconnectedAt, c.cut.NextAt = time.Minute, 61*time.Second, 61*time.Second
			if c.cut.Kind == "" {
				c.cut.Kind, c.cut.Lost, c.cut.ResumeRequested = "rst", true, true
			}
			r := m.Connections.Edit(0)
			r.Cuts, r.Numbered = &ledger.Cuts{List: []ledger.Cut{c.cut}}, !c.cut.Lost || c.cut.ResumeRequested
			v := requireOutcome(t, c.want, judgeSoak(m, server, Evidence{}))
			require.Contains(t, strings.Join(v.Reasons, "\n"), c.reason)
			require.Len(t, v.Cuts, 1)
			require.Equal(t, c.lost, v.Cuts[0].Lost)
			for r, cut := range v.AllCuts() {
				require.Equal(t, "d-0", r.ID)
				require.Equal(t, c.lost, cut.Missed)
			}
		})
	}
}

// If no message arrived after any cut of a kind, the outages of that kind have no known duration.
func TestCutsWithoutAMessageHaveNoOutage(t *testing.T) {
	t.Parallel()
	s := Streams{Counts: Counts{Cuts: []Cuts{{Kind: "half", Count: 4, Ended: 4}}}}
	require.Equal(t, []string{"half", "4", "4", "0", "0", "0", "0", "0", "–", "–", "–"}, s.CutTable().Rows[0])
}
