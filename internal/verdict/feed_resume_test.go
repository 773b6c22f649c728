package verdict

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// disconnect closes some streams before message 8, and opens their next streams before message 11. affects selects the
// streams. replay returns the first contents on the next stream of a client.
func (s *sharedRun) disconnect(affects func(stream int) bool, resumes, cut bool, replay func(stream int) []uint64) {
	s.plan.Reconnect, s.cfg.Resumes, s.cfg.Cuts = true, resumes, cut
	s.setContent(func(stream, message int) bool { return affects(stream) && message >= 8 && message <= 10 })
	s.beforeMessage = func(stream, message int, l *ledger.Ledger, at time.Duration) {
		switch {
		case !affects(stream):
		case message == 8 && cut:
			l.Cut(at-100*time.Millisecond, "rst", false)
			l.Closed(at-100*time.Millisecond, ledger.ReasonCut, false, true)
		case message == 8:
			l.Closed(at-100*time.Millisecond, "server", true, true)
		case message == 11:
			reopen(l, at-600*time.Millisecond, at-500*time.Millisecond, resumes)
			for _, sum := range replay(stream) {
				l.DeliveredUnnumbered(ledger.Fingerprint{At: at - 490*time.Millisecond, Sum: sum})
			}
		}
	}
}

// A client is expected to receive the messages of its outage only if it resumes.
func TestReconnectsOfComparedClients(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resumes bool
		replay  []uint64 // the first messages on the new stream; 8 to 10 were sent in the outage
		missed  uint64
	}{
		"without resuming":         {false, nil, 0},
		"resumed":                  {true, []uint64{8, 9, 10}, 0},
		"resumed, one lost":        {true, []uint64{8, 10}, 1},
		"history without resuming": {false, []uint64{6, 7, 8, 9, 10}, 0},
		"resumed, all lost":        {true, nil, 3},
	} {
		s := newSharedRun()
		s.disconnect(func(stream int) bool { return stream == 0 }, c.resumes, false, func(int) []uint64 { return c.replay })
		v := s.judge(t)
		require.Equal(t, [4]uint64{c.missed, 0, 0, 0}, faultCounts(v), "%s: %v", name, v.Reasons)
	}
}

// Losses and duplicates of a resume count at the disconnect before it, even if all clients resume.
func TestResumesOfComparedClients(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replay           []uint64 // the first messages on the new stream; 8 to 10 were sent in the outage
		lost, duplicated uint64
	}{
		"complete":                {[]uint64{8, 9, 10}, 0, 0},
		"the first lost":          {[]uint64{9, 10}, 1, 0},
		"one lost":                {[]uint64{8, 10}, 1, 0},
		"the last lost":           {[]uint64{8, 9}, 1, 0},
		"the last one again":      {[]uint64{7, 8, 9, 10}, 0, 1},
		"one again, and one lost": {[]uint64{7, 8, 10}, 1, 1},
		"the last three again":    {[]uint64{5, 6, 7, 8, 9, 10}, 0, 3},
		"a greeting again":        {[]uint64{1, 8, 9, 10}, 0, 0},
		"a greeting twice":        {[]uint64{1, 1, 8, 9, 10}, 0, 1},
		"the first two again":     {[]uint64{1, 2, 8, 9, 10}, 0, 1},
	} {
		for clients := 1; clients <= 4; clients++ {
			s := newSharedRun()
			s.plan.CutsPerSecond, s.plan.CutShares = .1, "rst"
			s.disconnect(func(stream int) bool { return stream < clients }, true, true, func(int) []uint64 { return c.replay })
			v := s.judge(t)
			lost, duplicated := uint64(clients)*c.lost, uint64(clients)*c.duplicated // #nosec G115 -- positive
			if clients == 4 {                                                        // the message reached no client
				lost = 0
			}
			require.Equal(t, [4]uint64{lost, duplicated, 0, 0}, faultCounts(v),
				"%s, %d clients: %v", name, clients, v.Reasons)
			i := slices.IndexFunc(v.Cuts, func(c Cuts) bool { return c.Kind == "rst" })
			require.Equal(t, [3]uint64{lost, duplicated, 0}, [3]uint64{v.Cuts[i].Lost, v.Cuts[i].Duplicated, v.Cuts[i].Repeated}, "%s, %d clients", name, clients)
		}
	}
}

func TestGreetingDoesNotShowAResume(t *testing.T) {
	t.Parallel()
	s := newSharedRun()
	s.plan.CutsPerSecond, s.plan.CutShares = .1, "rst"
	s.disconnect(func(stream int) bool { return stream == 0 }, true, true, func(int) []uint64 { return []uint64{1} })
	s.setContent(func(stream, message int) bool { return stream == 0 && message > 10 })
	v := s.judge(t)
	i := slices.IndexFunc(v.Cuts, func(c Cuts) bool { return c.Kind == "rst" })
	require.Equal(t, [3]int{1, 0, 0}, [3]int{v.Cuts[i].Count, v.Cuts[i].Resumed, v.Cuts[i].WithoutLoss}, "%v", v.Reasons)
}

// After a restart of the service, all clients resume at once. The messages of the outage were sent while no stream was
// open. Two clients lose one message each, and not the same one.
func TestLossesOfClientsThatAllResume(t *testing.T) {
	t.Parallel()
	s := newSharedRun()
	s.disconnect(func(int) bool { return true }, true, false, func(stream int) []uint64 {
		if stream == 1 {
			return []uint64{8, 10}
		}
		return []uint64{8, 9, 10}
	})
	s.setContent(func(stream, message int) bool { return stream == 2 && message == 11 }) // right after the resume
	v := requireOutcome(t, Fail, s.judge(t))
	require.EqualValues(t, 2, v.Messages.Missed, v.Reasons)
	require.Len(t, v.Findings, 2)
	texts := v.Findings[0].Text + v.Findings[1].Text // findings are ordered by runner
	require.Contains(t, texts, "gold-1 missed message 9")
	require.Contains(t, texts, "gold-2 missed message 11")
}
