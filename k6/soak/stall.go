package soak

import (
	"bytes"
	"math"
	"os"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// probeEvery is how often the process checks whether it runs on time.
const probeEvery = 100 * time.Millisecond

// A stallProbe measures stalls of this process: how much too late a timer fires. In that time no noop
// could be read either, whatever the server did. It sees a saturated machine, a stopped process and the
// pauses of the garbage collector.
type stallProbe struct {
	longest atomic.Int64 // nanoseconds, since it was last taken
	waits   *waits       // of a suite
}

// run probes until stop is closed.
func (p *stallProbe) run(stop <-chan struct{}) {
	timer := time.NewTimer(probeEvery)
	defer timer.Stop()
	if p.waits != nil {
		p.waits.begin(time.Now())
	}
	due := time.Now().Add(probeEvery)
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		late := now.Sub(due)
		if int64(late) > p.longest.Load() {
			p.longest.Store(int64(late))
		}
		if p.waits != nil {
			p.waits.add(now, late)
		}
		due = now.Add(probeEvery)
		timer.Reset(probeEvery)
	}
}

// takeLongest returns the longest stall since the last call.
func (p *stallProbe) takeLongest() time.Duration { return time.Duration(p.longest.Swap(0)) }

// keepWaits is how far back a request may have begun, in probes: ten minutes.
const keepWaits = 6000

// waits records for how long this process had to wait, probe by probe: how much of the time of an answer may
// be due to the generator. Three things are measured, as none sees all: how late a timer fires, which
// shows a busy machine; how long goroutines are ready but do not run, which shows a process with too little CPU;
// and how long the kernel lets a thread wait for a core, also in the middle of its work.
type waits struct {
	mu      sync.Mutex
	list    []wait // by time
	longest time.Duration
	from    time.Time
	latency schedLatency
	threads map[string]time.Duration // threadDelays before
}

type wait struct {
	from, to time.Time
	longest  time.Duration // of one waking
	thread   time.Duration // of the thread that waited most, in all
}

// begin starts the first interval.
func (w *waits) begin(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = now
	w.latency.takeLongest()
	w.takeLongestThread()
}

// add ends an interval, after which this process woke up late by some time.
func (w *waits) add(now time.Time, late time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := wait{from: w.from, to: now, longest: max(late, w.latency.takeLongest()), thread: min(w.takeLongestThread(), now.Sub(w.from))}
	if len(w.list) == keepWaits {
		w.list = append(w.list[:0], w.list[keepWaits/2:]...)
	}
	w.list = append(w.list, i)
	w.longest, w.from = max(w.longest, i.longest, i.thread), now
}

// sharing returns how many processes may have to wait for one answer: the generator, and the service if it shares the
// cores.
const sharing = 2

// added is the most by which waits can have lengthened an answer that took from one instant to the other: the
// longest delay of a wake-up for each time that this process had to wake up, or the waits of its thread,
// whichever is more.
func (w *waits) added(from, to time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var longest, thread time.Duration
	if to.After(w.from) && !w.from.IsZero() { // the probe is due, or late itself
		longest = max(time.Since(w.from)-probeEvery, 0)
	}
	for i := len(w.list) - 1; i >= 0 && !w.list[i].to.Before(from); i-- {
		if !w.list[i].from.After(to) {
			longest = max(longest, w.list[i].longest)
			thread += w.list[i].thread
		}
	}
	return max(shard.WakeUps*longest, sharing*thread)
}

// takeLongest returns the longest wait since the last call; 0 if waits are not measured.
func (w *waits) takeLongest() (longest time.Duration) {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	longest, w.longest = w.longest, 0
	return longest
}

// A schedLatency reads how long goroutines were ready to run before they ran.
type schedLatency struct {
	sample []metrics.Sample
	counts []uint64
}

// takeLongest returns the longest latency since the last call, as exact as the runtime's buckets. The runtime samples
// every eighth goroutine.
func (l *schedLatency) takeLongest() (longest time.Duration) {
	if l.sample == nil {
		l.sample = []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	}
	metrics.Read(l.sample)
	if l.sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h := l.sample[0].Value.Float64Histogram()
	if l.counts == nil {
		l.counts = append(l.counts, h.Counts...)
		return 0
	}
	for i, n := range h.Counts {
		if n > l.counts[i] && !math.IsInf(h.Buckets[i], 0) {
			longest = time.Duration(h.Buckets[i] * float64(time.Second))
		}
		l.counts[i] = n
	}
	return longest
}

// threadDelays is for how long each thread of this process was ready to run and waited for a core: the second
// number of /proc/PID/task/TID/schedstat. There is none on other kernels.
func threadDelays() map[string]time.Duration {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	delays := make(map[string]time.Duration, len(tasks))
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/self/task/" + task.Name() + "/schedstat")
		if err != nil {
			continue // the thread has just ended
		}
		if fields := bytes.Fields(text); len(fields) == 3 {
			ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			delays[task.Name()] = time.Duration(ns)
		}
	}
	return delays
}

// takeLongestThread returns the wait of the thread that waited most since the last call.
func (w *waits) takeLongestThread() (most time.Duration) {
	now := threadDelays()
	for thread, delay := range now {
		if w.threads != nil {
			most = max(most, delay-w.threads[thread])
		}
	}
	w.threads = now
	return most
}
