package soak

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// A fakeStream reconnects at once after a cut and receives the next noop.
type fakeStream struct {
	mu       sync.Mutex
	o        *observer
	next     uint64
	cuts     []sseclient.Cut
	isClosed bool
}

func (s *fakeStream) deliver() {
	s.next++
	s.o.event(time.Now(), event(strconv.FormatUint(s.next, 10), "0", ""))
}

func (s *fakeStream) Cut(kind sseclient.Cut, pause time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return false
	}
	s.cuts = append(s.cuts, kind)
	s.o.cut(time.Now(), kind)
	if kind == sseclient.CutPause {
		s.o.resumed(time.Now().Add(pause), kind)
	} else {
		s.o.closed(time.Now(), sseclient.Close{Reason: sseclient.ReasonCut})
		s.o.connect(time.Now())
	}
	s.deliver()
	return true
}

// cutRecorder returns a recorder with streams that can be cut after they have received a noop.
func cutRecorder(t *testing.T, streams int) (*recorder, []*fakeStream, plan.Plan) {
	t.Helper()
	p := newPlan()
	p.Connections, p.Seconds, p.NoopInterval, p.Reconnect, p.CutsPerSecond, p.PauseS = 100, 20, .5, true, 10, .1
	r := newRecorder()
	require.NoError(t, r.setPlan(p))
	r.cutter = new(cutter)
	var all []*fakeStream
	for range streams {
		s := &fakeStream{o: newObserver(t, r, "d-0")}
		r.cutter.add(cutTarget{s.o, s})
		s.o.connect(time.Now())
		all = append(all, s)
	}
	return r, all, p
}

// Each runner makes its share of the planned cuts. The ledgers record them.
func TestCutterMakesPlannedCuts(t *testing.T) {
	t.Parallel()
	want := map[string]int{}
	got := map[string]int{}
	_, _, p := cutRecorder(t, 0)
	p.Runners = 2
	for _, c := range p.PlannedCuts() {
		want[c.Kind]++
	}
	_, end := p.CutPeriod()
	for runner := 1; runner <= 2; runner++ {
		r, streams, _ := cutRecorder(t, 8)
		for _, s := range streams[1:] { // the first stream receives nothing
			s.deliver()
		}
		streams[7].isClosed = true
		r.cutter.run(t.Context(), &p, runner, time.Now().Add(-end)) // all cuts are due
		require.Empty(t, streams[0].cuts)
		require.Empty(t, streams[7].cuts)
		cutStreams := 0
		for _, s := range streams {
			cuts := s.o.ledger.Record().Cuts
			if cuts == nil {
				continue
			}
			cutStreams++
			for _, c := range cuts.List {
				got[c.Kind]++
			}
		}
		require.Greater(t, cutStreams, 3, "cuts must be spread over the streams")
	}
	require.Equal(t, want, got)
}

// If no stream can be cut, the cutter ends with the cut period, or with the run.
func TestCutterEnds(t *testing.T) {
	t.Parallel()
	r, streams, p := cutRecorder(t, 2)
	_, end := p.CutPeriod()
	r.cutter.run(t.Context(), &p, 1, time.Now().Add(-end-900*time.Millisecond))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r.cutter.run(ctx, &p, 1, time.Now())
	for _, s := range streams {
		require.Empty(t, s.cuts)
	}
	uncut := newObserver(t, newPlannedRecorder(t), "d-1")
	require.Nil(t, uncut.recorder.cutter, "a run without cuts must have no cutter")
}
