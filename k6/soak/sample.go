package soak

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// A sampler measures this process: a starved generator must not be read as a late server.
type sampler struct {
	self     *process.Process
	at       time.Time
	cpu      float64       // seconds, in all
	runDelay time.Duration // in all
	rssMax   uint64
	gcSince  time.Time
}

type sample struct {
	rss        uint64
	heapLive   uint64  // what the last garbage collection found in use
	cpuPercent float64 // of one core, since the sample before; see cpuPercent
	goroutines int
	files      int           // open descriptors
	gcPause    time.Duration // the longest since the sample before
	runDelay   time.Duration // run-queue latency: ready, but waiting for a core; of all threads, since the sample before
	stall      time.Duration // the longest time by which this process woke up late
}

func newSampler() *sampler {
	self, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		self = nil // no /proc: the figures stay 0, and reports say so
	}
	s := &sampler{self: self, at: time.Now(), gcSince: time.Now()}
	if self == nil {
		return s
	}
	if t, err := self.Times(); err == nil {
		s.cpu = t.User + t.System
	}
	return s
}

func (s *sampler) take() sample {
	out := sample{goroutines: runtime.NumGoroutine(), gcPause: s.longestPause(), heapLive: heapLive()}
	if s.self == nil {
		return out
	}
	if delay := runDelay(); delay >= s.runDelay { // a thread that ended takes its share with it
		out.runDelay = delay - s.runDelay
		s.runDelay = delay
	}
	if n, err := s.self.NumFDs(); err == nil {
		out.files = int(n)
	}
	if m, err := s.self.MemoryInfo(); err == nil {
		out.rss = m.RSS
		s.rssMax = max(s.rssMax, m.RSS)
	}
	if t, err := s.self.Times(); err == nil {
		now, cpu := time.Now(), t.User+t.System
		out.cpuPercent = cpuPercent(cpu-s.cpu, now.Sub(s.at))
		s.at, s.cpu = now, cpu
	}
	return out
}

// cpuPercent is of one core, over the time of a bucket at least: the last bucket of a run may be very
// short, and must not look like five seconds at full load.
func cpuPercent(seconds float64, wall time.Duration) float64 {
	return 100 * seconds / max(wall, shard.BucketWidth).Seconds()
}

// heapLive is the heap without garbage, in which a leak shows.
func heapLive() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(live); live[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return live[0].Value.Uint64()
}

func (s *sampler) longestPause() (longest time.Duration) {
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	for i, end := range stats.PauseEnd {
		if end.Before(s.gcSince) {
			break // newest first
		}
		longest = max(longest, stats.Pause[i])
	}
	s.gcSince = time.Now()
	return longest
}

// runDelay is how long the threads of this process were ready to run and had to wait for a
// core, in all: the second figure of /proc/PID/task/TID/schedstat. It is 0 on other kernels.
func runDelay() (sum time.Duration) {
	paths, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil {
		return 0
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has just ended
		}
		if fields := bytes.Fields(text); len(fields) == 3 {
			if ns, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				sum += time.Duration(ns)
			}
		}
	}
	return sum
}
