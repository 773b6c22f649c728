package soak

import (
	"bytes"
	"math"
	"os"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

const probeInterval = 100 * time.Millisecond

// A stallProbe measures stalls of this process by the lateness of a timer. During a stall the process cannot read
// messages. Causes are a saturated machine, a stopped process and pauses of the garbage collector.
type stallProbe struct {
	longest atomic.Int64 // nanoseconds, since the last takeLongest
	waits   *waits       // nil for a soak
}

func (p *stallProbe) run(stop <-chan struct{}) {
	timer := time.NewTimer(probeInterval)
	defer timer.Stop()
	if p.waits != nil {
		p.waits.begin(time.Now())
	}
	due := time.Now().Add(probeInterval)
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		lateness := now.Sub(due)
		if int64(lateness) > p.longest.Load() {
			p.longest.Store(int64(lateness))
		}
		if p.waits != nil {
			p.waits.add(now, lateness)
		}
		due = now.Add(probeInterval)
		timer.Reset(probeInterval)
	}
}

func (p *stallProbe) takeLongest() time.Duration { return time.Duration(p.longest.Swap(0)) }

// maxWaits is the maximum number of stored probes, for ten minutes. At that number, neighbors in the older half are
// merged in pairs, so at least the last five minutes keep their resolution.
const maxWaits = 6000

// A waits value records how long this process had to wait in each probe. These waits bound the part of a response time
// that the load generator may have caused. The value combines three measurements, because none shows all waits. The
// lateness of a timer shows a busy machine. The time for which goroutines are ready but do not run shows a process with
// too little CPU. The time for which threads wait for a core also includes waits in the middle of their work.
type waits struct {
	mu      sync.Mutex
	list    []wait // by time
	longest time.Duration
	from    time.Time
	latency schedLatency
	threads map[string]time.Duration // previous threadDelays
}

type wait struct {
	from, to time.Time
	longest  time.Duration // longest delay of one wake-up
	thread   time.Duration // total delay of the thread that waited longest
}

func (w *waits) begin(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = now
	w.latency.takeLongest()
	w.takeLongestThread()
}

// add ends a probe. lateness is the lateness of its timer.
func (w *waits) add(now time.Time, lateness time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	probe := wait{from: w.from, to: now, longest: max(lateness, w.latency.takeLongest()), thread: min(w.takeLongestThread(), now.Sub(w.from))}
	if len(w.list) == maxWaits {
		w.mergeOlderHalf()
	}
	w.list = append(w.list, probe)
	w.longest, w.from = max(w.longest, probe.longest, probe.thread), now
}

func (w *waits) mergeOlderHalf() {
	merged := w.list[:0]
	for pair := range slices.Chunk(w.list[:maxWaits/2], 2) {
		first, second := pair[0], pair[1]
		merged = append(merged, wait{
			from: first.from, to: second.to, longest: max(first.longest, second.longest), thread: first.thread + second.thread,
		})
	}
	w.list = append(merged, w.list[maxWaits/2:]...)
}

// waitingProcesses is the number of processes that may have to wait for a core during one response: the generator, and
// the service if it shares the cores.
const waitingProcesses = 2

// maxDelay returns the maximum time by which waits may have lengthened a response between two instants. It is the
// longer of two values: the longest delay of a wake-up multiplied by the number of wake-ups, and the waits of the
// threads of waitingProcesses.
func (w *waits) maxDelay(from, to time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var longest, thread time.Duration
	if to.After(w.from) && !w.from.IsZero() { // the current probe may be late
		longest = max(time.Since(w.from)-probeInterval, 0)
	}
	for i := len(w.list) - 1; i >= 0 && !w.list[i].to.Before(from); i-- {
		if !w.list[i].from.After(to) {
			longest = max(longest, w.list[i].longest)
			thread += w.list[i].thread
		}
	}
	return max(shard.WakeUps*longest, waitingProcesses*thread)
}

// takeLongest returns the longest wait since the last call, 0 if w is nil.
func (w *waits) takeLongest() (longest time.Duration) {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	longest, w.longest = w.longest, 0
	return longest
}

// A schedLatency measures how long goroutines were ready to run before they ran.
type schedLatency struct {
	sample []metrics.Sample
	counts []uint64
}

// takeLongest returns the longest latency since the last call, with the precision of the runtime's buckets. The first
// call returns 0. The runtime measures every eighth wait of a goroutine.
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

// threadDelays returns how long each thread of this process was ready to run and waited for a core: the second number
// of /proc/PID/task/TID/schedstat. It returns nil on systems other than Linux.
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

// takeLongestThread returns the longest wait of one thread since the last call. The first call returns 0.
func (w *waits) takeLongestThread() (longest time.Duration) {
	now := threadDelays()
	for thread, delay := range now {
		if w.threads != nil {
			longest = max(longest, delay-w.threads[thread])
		}
	}
	w.threads = now
	return longest
}
