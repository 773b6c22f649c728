package soak

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/metrics"
	"go.k6.io/k6/v2/output"

	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestWaitsAreThoseOfTheMoment(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(-time.Minute)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	w := waits{from: start}
	for i, late := range []time.Duration{0, 300 * time.Millisecond, 0, 20 * time.Millisecond} {
		w.note(at(100*(i+1)), late)
	}
	w.from = time.Now() // the probe is not due
	require.GreaterOrEqual(t, w.added(at(110), at(120)), shard.WakeUps*300*time.Millisecond)
	require.GreaterOrEqual(t, w.added(at(50), at(150)), shard.WakeUps*300*time.Millisecond, "it began before")
	require.Less(t, w.added(at(210), at(390)), shard.WakeUps*300*time.Millisecond, "at another moment")
	require.GreaterOrEqual(t, w.added(at(310), at(390)), shard.WakeUps*20*time.Millisecond)
	require.GreaterOrEqual(t, w.take(), 300*time.Millisecond)
	require.Zero(t, w.take())
}

// A probe that has not come back yet may be stalled together with the requests.
func TestAProbeThatIsOverdueCounts(t *testing.T) {
	t.Parallel()
	w := waits{from: time.Now().Add(-time.Second)}
	require.InDelta(t, .9*shard.WakeUps, w.added(time.Now(), time.Now()).Seconds(), 1.5)
}

func TestWaitsKeepTheLatest(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(-time.Hour)
	w := waits{from: start}
	for i := range 2 * keepWaits {
		w.note(start.Add(time.Duration(i+1)*time.Millisecond), time.Duration(i))
	}
	require.LessOrEqual(t, len(w.all), keepWaits)
	require.EqualValues(t, start.Add(2*keepWaits*time.Millisecond), w.all[len(w.all)-1].to)
}

// callTimes is an output that notes when k6 calls it.
type callTimes chan time.Time

func (c callTimes) Description() string                          { return "" }
func (c callTimes) Start() error                                 { return nil }
func (c callTimes) Stop() error                                  { return nil }
func (c callTimes) AddMetricSamples(_ []metrics.SampleContainer) { c <- time.Now() }

// The probe of a soak rests on how often k6 calls its outputs, which is not said anywhere: a new k6 may change it.
func TestK6CallsOutputsAsOftenAsTheProbeTakesIt(t *testing.T) {
	t.Parallel()
	calls, samples := make(callTimes, 1000), make(chan metrics.SampleContainer)
	wait, finish, err := output.NewManager([]output.Output{calls}, logrus.New(), nil).Start(samples)
	require.NoError(t, err)
	last, onTime := <-calls, 0
	for i := 0; i < 200 && onTime < 5; i++ { // a busy machine calls late, and then early
		at := <-calls
		if gap := at.Sub(last); gap > outputsEvery*9/10 && gap < outputsEvery*11/10 {
			onTime++
		}
		last = at
	}
	require.Equal(t, 5, onTime)
	close(samples)
	wait()
	finish(nil)
}

func TestACallThatIsLateIsAStall(t *testing.T) {
	t.Parallel()
	var p stallProbe
	at := time.Now()
	for _, ms := range []time.Duration{0, 50, 100, 450, 500} {
		p.called(at.Add(ms * time.Millisecond))
	}
	require.Equal(t, 300*time.Millisecond, p.take())
	require.Zero(t, p.take())
}

// A process with more to do than it has CPU for lets its goroutines wait, though its timers fire in time.
func TestGoroutinesThatWaitAreSeen(t *testing.T) {
	var l schedLatency
	require.Zero(t, l.take(), "the first only begins")
	var stop atomic.Bool
	defer stop.Store(true)
	for range 20 * runtime.GOMAXPROCS(0) {
		go func() {
			for !stop.Load() { // it computes
			}
		}()
	}
	require.Eventually(t, func() bool { return l.take() > 50*time.Millisecond }, 20*time.Second, 200*time.Millisecond)
}
