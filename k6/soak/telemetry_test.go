package soak

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// newPublishingVU returns a virtual user and the channel of its samples. Samples are published only at the start of the
// first stream and at the end of the last one.
func newPublishingVU(t *testing.T, capacity int) (*modulestest.Runtime, *recorder, chan metrics.SampleContainer) {
	t.Helper()
	r := newRecorder()
	r.telemetry.interval = time.Hour
	rt, samples := newPublishingVUOf(t, r, capacity)
	return rt, r, samples
}

// newPublishingVUOf returns a virtual user of a process with the given recorder.
func newPublishingVUOf(t *testing.T, r *recorder, capacity int) (*modulestest.Runtime, chan metrics.SampleContainer) {
	t.Helper()
	rt := newVUOf(t, r)
	js(t, rt, planJS)
	samples := make(chan metrics.SampleContainer, capacity)
	rt.MoveToVUContext(&lib.State{Samples: samples, Options: lib.Options{RunTags: map[string]string{"testid": "t", "runner": "2"}}})
	return rt, samples
}

func newStream(t *testing.T, rt *modulestest.Runtime, id string) *observer {
	t.Helper()
	js(t, rt, `var l = new Ledger("`+id+`"); ""`)
	o, ok := rt.VU.Runtime().Get("l").Export().(*jsLedger)
	require.True(t, ok)
	return &o.observer
}

// drainSamples reads all samples. It returns the sums of counters and the last values of gauges.
func drainSamples(t *testing.T, samples chan metrics.SampleContainer) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for {
		select {
		case c := <-samples:
			for _, s := range c.GetSamples() {
				name, tags := s.Metric.Name, s.Tags.Map()
				if le, ok := tags["le"]; ok {
					require.Equal(t, latenessBuckets.name, name)
					name += " " + le
					delete(tags, "le")
				}
				require.Equal(t, map[string]string{"testid": "t", "runner": "2"}, tags, "the samples must have only the tags of the run")
				if s.Metric.Type == metrics.Counter {
					require.GreaterOrEqual(t, s.Value, 0.)
					out[name] += s.Value
				} else {
					out[name] = s.Value
				}
			}
		default:
			return out
		}
	}
}

var closedByServer = sseclient.Close{Reason: sseclient.ReasonServer, Retry: -1}

func TestLastStreamPublishesFinalCounts(t *testing.T) {
	t.Parallel()
	rt, r, samples := newPublishingVU(t, 100)
	steady, faulty := newStream(t, rt, "d-0"), newStream(t, rt, "d-1")
	at := r.start
	for _, o := range []*observer{steady, faulty} {
		o.connect(at)
		o.event(at.Add(15*time.Second), event("1", "0", ""))
	}
	steady.event(at.Add(32*time.Second), event("2", "0", "")) // 2 s late
	faulty.event(at.Add(45*time.Second), event("3", "0", "")) // 2 is lost
	faulty.event(at.Add(45*time.Second), event("3", "0", ""))
	faulty.event(at.Add(60*time.Second), event("4", "?", ""))
	faulty.closed(at.Add(61*time.Second), closedByServer) // not requested
	steady.endBy(sseclient.ReasonServer, at.Add(33*time.Second))

	got := drainSamples(t, samples)
	require.Greater(t, got["soak_rss_bytes"], 1e6)
	require.InDelta(t, 2, got["soak_lateness_max_seconds"], .02)
	require.Less(t, got["soak_lateness_p50_seconds"], .01)
	for _, name := range []string{"soak_rss_bytes", "soak_cpu_percent", "soak_lateness_p50_seconds", "soak_lateness_p99_seconds", "soak_lateness_max_seconds", "soak_remaining_seconds"} {
		require.Contains(t, got, name)
		delete(got, name)
	}
	// A corrupted noop has a lateness, but a duplicate has none.
	for le, want := range map[string]float64{"0.001": 4, "1": 4, "2.5": 5, "5": 5, "+Inf": 5} {
		require.InDelta(t, want, got[latenessBuckets.name+" "+le], 0, le)
	}
	maps.DeleteFunc(got, func(name string, _ float64) bool { return strings.HasPrefix(name, latenessBuckets.name) })
	require.Equal(t, map[string]float64{
		"soak_noops": 4, "soak_noops_late": 1, "soak_noops_expected": 6, "soak_noops_missed": 1,
		"soak_noops_duplicated": 1, "soak_noops_reordered": 0, "soak_noops_corrupted": 1,
		"soak_streams_planned": 2, "soak_runners_planned": 1, "soak_streams_completed": 1, "soak_streams_dropped": 1, "soak_streams_refused": 0,
		"soak_streams_reconnected": 0, "soak_streams_open": 0, "soak_reports": 2,
	}, got)
}

// After an interrupt, the last sample reports that no stream is open, if k6 still reads samples. A killed runner
// reports nothing.
func TestInterruptedRunPublishesClosedStreams(t *testing.T) {
	t.Parallel()
	rt, r, samples := newPublishingVU(t, 100)
	a, b := newStream(t, rt, "d-0"), newStream(t, rt, "d-1")
	a.connecting(r.start)
	b.connecting(r.start)
	require.InDelta(t, 1, drainSamples(t, samples)["soak_streams_open"], 0, "the start of the first stream must be published")
	rt.CancelContext()
	a.closed(r.start, sseclient.Close{Reason: sseclient.ReasonInterrupted, Retry: -1})
	b.closed(r.start, sseclient.Close{Reason: sseclient.ReasonInterrupted, Retry: -1})
	got := drainSamples(t, samples)
	require.Contains(t, got, "soak_streams_open")
	require.Zero(t, got["soak_streams_open"])
}

// Metrics of a described service count messages, not noops.
func TestDescribedServicePublishesMessages(t *testing.T) {
	t.Parallel()
	rt, r := newServiceVU(t, descriptionJS)
	r.telemetry.interval = time.Hour
	samples := make(chan metrics.SampleContainer, 100)
	rt.VU.StateField.Samples, rt.VU.StateField.Options.RunTags = samples, map[string]string{"testid": "t", "runner": "2"}
	o := newStream(t, rt, "d-1")
	o.connect(r.start)
	feed(t, o, r.start.Add(time.Second), ": hello\n\n")
	for _, n := range []int64{1, 2, 4, 4} {
		at := r.start.Add(time.Duration(1+n) * time.Second)
		feed(t, o, at, r.message(t, "run-1.1", n, at.Add(-20*time.Millisecond)))
	}
	o.endBy(sseclient.ReasonClient, r.start.Add(6*time.Second))
	got := drainSamples(t, samples)
	require.InDelta(t, .02, got["soak_lateness_p50_seconds"], .001, "the lateness must be in seconds, from sending to receiving")
	for name := range got {
		require.NotContains(t, name, "noop")
	}
	for name, want := range map[string]float64{
		"soak_messages": 3, "soak_messages_expected": 4, "soak_messages_missed": 1, "soak_messages_duplicated": 1, "soak_messages_late": 0,
		"soak_heartbeats": 1, "soak_published": 0, "soak_confirmed": 0, "soak_streams_completed": 1,
	} {
		require.Contains(t, got, name)
		require.InDelta(t, want, got[name], 0, name)
	}
}

// A counter of k6 never decreases, even if a count of the ledger does.
func TestCountersNeverDecrease(t *testing.T) {
	t.Parallel()
	rt, r, samples := newPublishingVU(t, 100)
	o := r.telemetry.sink(rt.VU)
	for _, received := range []uint64{5, 4, 7} {
		v := &snapshot{}
		v.Received = received
		o.samples <- r.telemetry.samplesOf(v, metricsOf["noop"], o.tags)
	}
	require.InDelta(t, 7, drainSamples(t, samples)["soak_noops"], 0)
}

func TestCanceledIterationPublishesNothing(t *testing.T) {
	t.Parallel()
	rt, r, samples := newPublishingVU(t, 0) // a push would block
	o := newStream(t, rt, "d-0")
	rt.CancelContext()
	o.connecting(r.start)
	o.closed(r.start, sseclient.Close{Reason: sseclient.ReasonInterrupted, Retry: -1})
	require.Nil(t, r.telemetry.stop, "the goroutine must have ended")
	require.Empty(t, r.telemetry.openSinks)
	require.Empty(t, drainSamples(t, samples))
}

// k6 closes the channel after the last iteration. Sending a sample after that would panic. The test depends on the race
// detector.
func TestNoSampleFollowsTheLastStream(t *testing.T) {
	t.Parallel()
	for range 2 {
		r := newRecorder()
		r.telemetry.interval = time.Microsecond
		rt, samples := newPublishingVUOf(t, r, 1)
		var all []*observer
		for _, id := range []string{"d-0", "d-1"} {
			all = append(all, newStream(t, rt, id))
		}
		sampleCount := make(chan int)
		go func() {
			n := 0
			for range samples {
				n++
			}
			sampleCount <- n
		}()
		var streams sync.WaitGroup
		for _, o := range all {
			streams.Go(func() {
				for range 50 {
					o.connecting(r.start)
					o.closed(r.start, sseclient.Close{Reason: sseclient.ReasonRefused, Retry: time.Second})
				}
			})
		}
		streams.Wait()
		close(samples)
		require.Positive(t, <-sampleCount)
	}
}

// When the virtual user that publishes the metrics ends, another one continues.
func TestPublishingOutlivesAVirtualUser(t *testing.T) {
	t.Parallel()
	first, r, _ := newPublishingVU(t, 100)
	second, samples := newPublishingVUOf(t, r, 100)
	a, b := newStream(t, first, "d-0"), newStream(t, second, "d-1")
	a.connecting(r.start)
	b.connecting(r.start)
	a.closed(r.start, closedByServer)
	first.CancelContext()
	drainSamples(t, samples)
	r.telemetry.mu.Lock()
	r.telemetry.publish(r.telemetry.state())
	r.telemetry.mu.Unlock()
	require.Contains(t, drainSamples(t, samples), "soak_noops")
	b.closed(r.start, closedByServer)
}

// Adding up 100,000 ledgers takes a long time. A stream that starts or ends must not wait for the sum, because all
// reads of streams would wait, too.
func TestStreamEndsWhileLedgersAreAddedUp(t *testing.T) {
	t.Parallel()
	rt, r, _ := newPublishingVU(t, 1000)
	r.telemetry.interval = time.Millisecond
	o := newStream(t, rt, "d-0")
	o.connecting(r.start)
	r.mu.Lock() // as happens while the ledgers are added up
	for range 50 {
		require.Eventually(t, r.telemetry.mu.TryLock, time.Minute, time.Millisecond)
		r.telemetry.mu.Unlock()
	}
	r.mu.Unlock()
	o.closed(r.start, closedByServer)
}

func TestActionsStartAtTheirTime(t *testing.T) {
	t.Parallel()
	rt, r, _ := newPublishingVU(t, 1)
	p := r.telemetry
	p.setActions([]plan.Action{{Name: "deploy", At: time.Minute}, {Name: "late", At: time.Hour}})
	p.firstStart = time.Now().Add(-time.Minute)
	got := map[string]float64{}
	for _, s := range p.actionsOf(p.sink(rt.VU).tags) {
		require.Equal(t, "t", s.Tags.Map()["testid"])
		got[s.Tags.Map()["action"]] = s.Value
	}
	require.Equal(t, map[string]float64{"deploy": 1, "late": 0}, got)
}

// The k6-operator pauses a runner until all runners are ready.
func TestRemainingTimeCountsFromTheFirstStream(t *testing.T) {
	t.Parallel()
	rt, r, samples := newPublishingVU(t, 100)
	r.start = r.start.Add(-time.Hour)
	o := newStream(t, rt, "d-0")
	o.connecting(time.Now())
	require.InDelta(t, r.plan.Hold().Seconds(), drainSamples(t, samples)["soak_remaining_seconds"], 5)
	o.closed(time.Now(), closedByServer)
}

func TestPlannedStreamsOfARunWithoutConnections(t *testing.T) {
	t.Parallel()
	rt, r, _ := newPublishingVU(t, 1)
	require.Equal(t, 2, r.plan.Connections)
	r.plan.Connections = 0 // as under `k6 run --vus 600 --iterations 600`
	options := lib.Options{}
	require.NoError(t, options.Scenarios.UnmarshalJSON([]byte(`{"s": {"executor": "per-vu-iterations", "vus": 5, "iterations": 3}}`)))
	rt.VU.StateField.Options.Scenarios = options.Scenarios
	r.telemetry.sink(rt.VU)
	require.Equal(t, 15, r.plan.Connections)
}

func TestPublishedMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../load-tests/types/soak.d.ts")
	require.NoError(t, err)
	documented := string(text)
	names := map[string]bool{}
	for _, f := range slices.Concat(metricsOf["noop"], metricsOf["message"], latenessMetrics, controlMetrics) {
		kind := strings.ToLower(f.kind.String())
		require.Contains(t, documented, "| `"+f.name+"` | "+kind, f.name)
		names[f.name] = true
	}
	for _, m := range append(responseBuckets, latenessBuckets) {
		require.Contains(t, documented, "| `"+m.name+"` | counter")
		names[m.name] = true
	}
	require.Contains(t, documented, "| `"+responsesMetric+"` | counter")
	require.Contains(t, documented, "| `"+actionMetric+"` | gauge")
	names[responsesMetric], names[actionMetric] = true, true
	require.Equal(t, len(names), strings.Count(documented, "| `soak_")+strings.Count(documented, "| `gen_ai_"))
}
