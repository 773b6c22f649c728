package soak

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

func TestDroppedStreamsReconnectAndAreMeasured(t *testing.T) {
	t.Parallel()
	s := &noopService{}
	h := holderOf(t, s.serve(t), "")
	require.True(t, h.run(t, strings.NewReplacer("openFor: 2000", "openFor: 4500", "reconnect: false", `reconnect: false, phases: [
		{name: "spread", at: 500, action: "drop"}, {name: "at-once", at: 3500, action: "dropAtOnce"}]`).Replace(holdTen)))
	require.Len(t, s.connects, 30)
	all := map[string]float64{"spread": 10, "at-once": 10}
	for _, metric := range []string{"storm_dropped", stormConnect, stormDialDelay} {
		samples := map[string]float64{}
		for phase, sum := range h.metricSums(metric, "scenario") {
			samples[phase] = sum[1]
		}
		require.Equal(t, all, samples, metric)
	}
	require.Less(t, h.metricSums(stormDialDelay, "scenario")["spread"][0]/10, 900., "delay in ms, without the reconnection time")
	require.Equal(t, [2]float64{10, 10}, h.metricSums("checks", "check")["Received all messages"], "the shard must contain the missed messages")
	require.Equal(t, 10, s.deletes)
}

func TestVanishedStreamsAreNeitherEndedNorChecked(t *testing.T) {
	t.Parallel()
	s := &noopService{}
	h := holderOf(t, s.serve(t), "")
	start := time.Now()
	require.True(t, h.run(t, strings.NewReplacer("openFor: 2000", "openFor: 60000", "reconnect: false",
		`reconnect: false, phases: [{name: "gone", at: 1000, action: "vanish"}]`).Replace(holdTen)))
	require.Less(t, time.Since(start), 30*time.Second, "no stream stays open")
	require.Equal(t, map[string][2]float64{"gone": {10, 10}}, h.metricSums("vanish_vanished", "scenario"))
	require.Equal(t, map[ledger.State]int{ledger.Dropped: 10}, h.states())
	require.Zero(t, s.deletes)
	require.Empty(t, h.metricSums("checks", "check"))
}

func TestStreamsOpenEvenlyOverTheRamp(t *testing.T) {
	t.Parallel()
	s := &noopService{}
	h := holderOf(t, s.serve(t), "")
	start := time.Now()
	var opened []time.Duration
	s.onConnect = func() { opened = append(opened, time.Since(start)) }
	require.True(t, h.run(t, strings.NewReplacer("from: 0, to: 10", "streams: [2, 3, 5, 7], ramp: 4000", "openFor: 2000", "openFor: 5000", "idleTimeout: 5000", "idleTimeout: 60000").Replace(holdTen)))
	require.Len(t, opened, 4)
	for i, at := range opened {
		require.InDelta(t, 1000*i+450, at.Milliseconds(), 450)
	}
	require.Equal(t, map[ledger.State]int{ledger.Completed: 4}, h.states())
}

func TestHoldRefusesInvalidPhases(t *testing.T) {
	t.Parallel()
	for _, p := range []string{`{name: "x", at: 0, action: "explode"}`, `{name: "", at: 0, action: "drop"}`, `{name: "x", at: -1, action: "drop"}`} {
		h := holderOf(t, (&noopService{}).serve(t), "")
		_, err := h.VU.Runtime().RunString(strings.Replace(holdTen, "reconnect: false", "reconnect: false, phases: ["+p+"]", 1))
		require.ErrorContains(t, err, "must have a name")
	}
}
