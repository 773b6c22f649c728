package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func cutLedger(counting Counting) *Ledger {
	return openLedgerAt(&Config{Counting: counting, Published: counting == Numbered, ClientEnds: true, Cuts: true, Interval: sec, LatenessLimit: sec}, sec/2, sec)
}

func TestCutRecordsItsEffects(t *testing.T) {
	t.Parallel()
	for _, counting := range []Counting{Numbered, Noops} {
		l := cutLedger(counting)
		require.False(t, l.CanCut(), "no message arrived yet, so the client cannot resume")
		deliverAll(l, 2*sec, 1)
		deliverAll(l, 3*sec, 2)
		require.True(t, l.CanCut())
		l.Cut(4*sec, "rst", false)
		require.False(t, l.CanCut())
		l.Closed(4*sec, ReasonCut, false, true)
		require.False(t, l.CanCut())
		l.Connecting(5 * sec)
		if counting == Numbered {
			l.IDReceived()
		}
		l.Opened(6 * sec)
		require.False(t, l.CanCut())
		deliverAll(l, 7*sec, 3, 4, 4, 5)
		require.True(t, l.CanCut())
		r := l.Record()
		require.Equal(t, []Cut{{Kind: "rst", At: 4 * sec, LastNumber: 2, Lost: true, ReconnectedAt: 6 * sec, ResumeRequested: true, NextAt: 7 * sec, Next: 3, Duplicated: 1}}, r.Cuts.List)
		interruption, ok := r.Cuts.List[0].Interruption()
		require.Equal(t, 3*sec, interruption)
		require.True(t, ok)
		l.CloseRequested(8 * sec)
		require.False(t, l.CanCut())
	}
}

func TestCutRecordsMessagesOutOfOrder(t *testing.T) {
	t.Parallel()
	for _, counting := range []Counting{Numbered, Noops} {
		l := cutLedger(counting)
		deliverAll(l, 2*sec, 1)
		deliverAll(l, 3*sec, 2)
		l.Cut(4*sec, "rst", false)
		reconnect(l, 4*sec, 5*sec, 6*sec)
		deliverAll(l, 7*sec, 6, 5, 3, 8, 7) // 4 is lost; 7 was skipped after the first message
		c := l.Record().Cuts.List[0]
		require.Equal(t, []uint64{6, 2}, []uint64{c.Next, c.Filled})
	}
}

// Ids that do not number the noops of a client prove neither a loss nor a copy.
func TestCutHasNoNumbersIfTheClockDecides(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string][]uint64{"a counter over all clients": {1, 7, 13, 30, 37}, "a constant id": {1, 1, 1, 1, 1}} {
		l := cutLedger(Noops)
		deliverAll(l, 2*sec, ids[0])
		deliverAll(l, 3*sec, ids[1])
		l.Cut(3*sec+1, "rst", false)
		reconnect(l, 3*sec+1, 3*sec+2, 3*sec+3)
		deliverAll(l, 4*sec, ids[2])
		deliverAll(l, 5*sec, ids[3])
		deliverAll(l, 6*sec, ids[4])
		r := l.Record()
		require.False(t, r.Numbered, name)
		require.Equal(t, []Cut{{Kind: "rst", At: 3*sec + 1, Lost: true, ReconnectedAt: 3*sec + 3, NextAt: 4 * sec}}, r.Cuts.List, name)
	}
}

func TestPauseLosesTheStreamOnlyIfTheServiceEndsIt(t *testing.T) {
	t.Parallel()
	l := cutLedger(Numbered)
	deliverAll(l, 2*sec, 1)
	l.Cut(3*sec, "pause", true)
	require.False(t, l.CanCut())
	l.PauseOver(5 * sec)
	require.False(t, l.CanCut())
	deliverAll(l, 5*sec+1, 2)
	l.Cut(6*sec, "pause", true)
	l.PauseOver(8 * sec)
	deliverAll(l, 8*sec+1, 3)              // sent before the service ended the stream
	l.Closed(8*sec+2, "reset", true, true) // the service had ended the stream
	l.Connecting(9 * sec)
	l.IDReceived()
	l.Opened(10 * sec)
	deliverAll(l, 11*sec, 4)
	reconnect(l, 20*sec, 20*sec, 21*sec) // not caused by a cut
	l.Announced(21 * sec)                // also not caused by a cut
	deliverAll(l, 22*sec, 5)
	require.Equal(t, []Cut{
		{Kind: "pause", At: 3 * sec, LastNumber: 1, ReconnectedAt: 5 * sec, NextAt: 5*sec + 1, Next: 2},
		{Kind: "pause", At: 6 * sec, LastNumber: 3, Lost: true, ReconnectedAt: 10 * sec, ResumeRequested: true, NextAt: 11 * sec, Next: 4},
	}, l.Record().Cuts.List)
}

// The time in which a client does not read is not a silence of the service.
func TestPauseIsNotASilence(t *testing.T) {
	t.Parallel()
	l := cutLedger(Numbered)
	deliverAll(l, 2*sec, 1)
	l.Cut(5*sec, "pause", true)
	l.PauseOver(15 * sec)
	l.RecordSign(5*sec, HeartbeatSign) // a comment line from before the pause, without the end of its block
	deliverAll(l, 17*sec, 2)
	require.Equal(t, 3*sec, l.Record().MaxSilence)
}

// The noop of 8 s arrives at the end of a pause. In a campaign, such a noop, the last one of its stream, made the
// measured interval 8 % too long.
func TestPauseDoesNotChangeTheMeasuredInterval(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{true, false} {
		for _, last := range []uint64{7, 8, 12} { // number of the last noop
			l := cutLedger(Noops)
			for n := uint64(1); n <= 6; n++ {
				deliverAll(l, Instant(n+1)*sec, numberIf(numbered, n))
			}
			l.Cut(7*sec+sec/2, "pause", true)
			l.PauseOver(8*sec + sec/2)
			deliverAll(l, 8*sec+sec/2+1, numberIf(numbered, 7))
			for n := uint64(8); n <= last; n++ {
				deliverAll(l, Instant(n+1)*sec, numberIf(numbered, n))
			}
			r := l.Record()
			require.Equal(t, sec, r.Interval, "numbered %v, last noop %d", numbered, last)
			require.Zero(t, r.UnevenGaps)
			require.Equal(t, last, r.Received)
		}
	}
}

// The noops that were due in a pause arrive together after it. Only the time after the pause counts as their lateness.
func TestPauseDoesNotMakeNoopsLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		numbered bool
		burst    Instant
		late     uint64
	}{
		"by number, at the end of the pause":   {numbered: true, burst: 10*sec + sec/10},
		"by interval, at the end of the pause": {burst: 10*sec + sec/10},
		"by number, after a delay":             {numbered: true, burst: 12*sec + sec/2, late: 5},
		"by interval, after a delay":           {burst: 12*sec + sec/2, late: 5},
	} {
		l := cutLedger(Noops)
		for n := uint64(1); n <= 5; n++ {
			deliverAll(l, Instant(n+1)*sec, numberIf(c.numbered, n))
		}
		l.Cut(6*sec+sec/10, "pause", true)
		l.PauseOver(10 * sec)
		missed := uint64(c.burst/sec) - 6
		for n := range missed {
			deliverAll(l, c.burst+Instant(n), numberIf(c.numbered, 6+n))
		}
		for n := range uint64(4) {
			deliverAll(l, Instant(7+missed+n)*sec, numberIf(c.numbered, 6+missed+n))
		}
		r := l.Record()
		require.Zero(t, r.Missed(), name)
		require.Equal(t, c.late, r.Late, name)
		require.Less(t, r.MaxLateness, c.burst-10*sec+sec/10, name)
	}
}

// A client that pauses detects only afterward that the service ended its stream on time.
func TestPauseDoesNotCountAsLifetime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pause, over, end Instant
		requested        bool
		want             uint64
	}{
		"the stream ended during the pause":      {pause: 60 * sec, over: 67 * sec, end: 67*sec + 1},
		"the end was due before the pause":       {pause: 66 * sec, over: 71 * sec, end: 71*sec + 1, want: 1},
		"the stream continued after the pause":   {pause: 40 * sec, over: 45 * sec, end: 66 * sec, want: 1},
		"the end was requested during the pause": {pause: 60 * sec, end: 66 * sec, requested: true},
	} {
		l := openLedgerAt(&Config{
			Counting: Numbered, Published: true, ClientEnds: true, Cuts: true, Interval: sec, LatenessLimit: sec, Lifetime: 50 * sec, MaxLifetime: 60 * sec,
		}, sec/2, sec)
		deliverAll(l, 2*sec, 1)
		l.Cut(c.pause, "pause", true)
		if c.over > 0 {
			l.PauseOver(c.over)
		}
		if c.requested {
			l.CloseRequested(c.end)
		}
		l.Closed(c.end, "server", true, !c.requested)
		require.Equal(t, c.want, l.Record().Overdue, name)
	}
}

// The headers or a block after them may announce a gap. The headers arrive before the stream is recorded. A gap that is
// announced long after a cut does not belong to the cut.
func TestAnnouncedGapBelongsToTheLastCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after Instant
		want          uint64
	}{{5 * sec, 0, 1}, {0, 6*sec + 1, 1}, {0, 6*sec + resumeTime + 1, 0}} {
		l := cutLedger(Numbered)
		deliverAll(l, 2*sec, 1)
		l.Cut(4*sec, "half", false)
		l.Closed(4*sec, ReasonCut, false, true)
		l.Connecting(5 * sec)
		if c.before > 0 {
			l.Announced(c.before)
		}
		l.Opened(6 * sec)
		if c.after > 0 {
			l.Announced(c.after)
		}
		require.Equal(t, c.want, l.Record().Cuts.List[0].Announced)
	}
}

func TestCutsAreLimited(t *testing.T) {
	t.Parallel()
	l := cutLedger(Numbered)
	for range maxCuts + 3 {
		l.Cut(4*sec, "pause", true)
		l.PauseOver(5 * sec)
	}
	r := l.Record()
	require.Len(t, r.Cuts.List, maxCuts)
	require.EqualValues(t, 3, r.Cuts.Unlisted)
	require.Nil(t, New("x", &Config{Interval: sec}).stream.cuts, "a run without cuts must not allocate their state")
}
