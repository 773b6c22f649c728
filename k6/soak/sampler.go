package soak

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// A sampler measures this process, so that delays of a saturated load generator are not attributed to the service.
type sampler struct {
	self      *process.Process
	width     time.Duration // of a bucket
	sampledAt time.Time
	lastUsage usage
	rssMax    uint64
	gcSince   time.Time
	gc        debug.GCStats // reused buffers
}

// A usage is the total resource usage of this process.
type usage struct {
	cpu      float64 // seconds
	runDelay time.Duration
	threads  int // 0: unknown
}

// usage returns the current usage. ok is false if the system does not report it.
func (s *sampler) usage() (u usage, ok bool) {
	if s.self == nil {
		return u, false
	}
	times, err := s.self.Times()
	if err != nil {
		return u, false
	}
	u.cpu = times.User + times.System
	delays := threadDelays()
	for _, delay := range delays {
		u.runDelay += delay
	}
	u.threads = len(delays)
	return u, true
}

// newSampler returns a sampler for buckets of the given width. Its first sample covers the time from now.
func newSampler(width time.Duration) *sampler {
	self, err := process.NewProcess(int32(os.Getpid())) // #nosec G115 -- a process id
	if err != nil {
		self = nil // only the figures of the Go runtime are known; all other figures stay 0
	}
	s := &sampler{self: self, width: width, sampledAt: time.Now(), gcSince: time.Now()}
	s.lastUsage, _ = s.usage()
	return s
}

// sample returns the current resources of this process, and the usage since the previous sample.
func (s *sampler) sample() shard.ProcessUsage {
	out := shard.ProcessUsage{Goroutines: runtime.NumGoroutine(), GCPauseUS: s.longestPause().Microseconds(), HeapLive: heapLive()}
	if s.self == nil {
		return out
	}
	out.Files = s.files()
	out.RSS = s.rss()
	u, ok := s.usage()
	if out.Threads = u.threads; out.Threads == 0 {
		n, _ := s.self.NumThreads()
		out.Threads = int(n)
	}
	if ok {
		now := time.Now()
		out.CPUPercent = cpuPercent(u.cpu-s.lastUsage.cpu, now.Sub(s.sampledAt), s.width)
		s.sampledAt, s.lastUsage.cpu = now, u.cpu
		if u.runDelay >= s.lastUsage.runDelay { // the delay of an ended thread is no longer counted
			out.RunDelayMS, s.lastUsage.runDelay = (u.runDelay - s.lastUsage.runDelay).Milliseconds(), u.runDelay
		}
	}
	return out
}

// rss returns the resident memory in bytes, 0 if it is unknown. It also updates rssMax.
func (s *sampler) rss() uint64 {
	if s.self == nil {
		return 0
	}
	m, err := s.self.MemoryInfo()
	if err != nil {
		return 0
	}
	s.rssMax = max(s.rssMax, m.RSS)
	return m.RSS
}

// files returns the number of open descriptors of this process, 0 if it is unknown. Since Linux 6.2 this is the size of
// /proc/self/fd. Listing thousands of descriptors every few seconds used a tenth of a runner's CPU.
func (s *sampler) files() int {
	if folder, err := os.Stat("/proc/self/fd"); err == nil && folder.Size() > 0 {
		return int(folder.Size())
	}
	n, err := s.self.NumFDs()
	if err != nil {
		return 0
	}
	return int(n)
}

// cpuPercent returns the CPU usage in percent of one core. It divides by at least the width of a bucket, so that a very
// short last bucket does not appear as full load.
func cpuPercent(seconds float64, wall, width time.Duration) float64 {
	return 100 * seconds / max(wall, width).Seconds()
}

// heapLive returns the bytes of live objects at the last garbage collection, 0 if unknown. Their growth shows leaks.
func heapLive() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(live); live[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return live[0].Value.Uint64()
}

func (s *sampler) longestPause() (longest time.Duration) {
	debug.ReadGCStats(&s.gc)
	for i, end := range s.gc.PauseEnd {
		if end.Before(s.gcSince) {
			break // newest first
		}
		longest = max(longest, s.gc.Pause[i])
	}
	s.gcSince = time.Now()
	return longest
}

// secondSamples holds the samples of each second: CPU, waits for a core, stalls and memory. Suites need them in
// addition to the buckets of 5 s, because a stage may last only seconds.
type secondSamples struct {
	sampledAt time.Time
	lastUsage usage
	stall     time.Duration // longest stall in the current bucket
	list      []shard.Second
}

// add adds a sample of the time since the last call. The first call only sets the start. stall and wait are the longest
// in that time. An unknown usage of the process counts as unchanged, because stages are judged by stall and wait.
func (l *secondSamples) add(now time.Time, s *sampler, stall, wait time.Duration) {
	l.stall = max(l.stall, stall)
	u, ok := s.usage()
	if !ok {
		u = l.lastUsage
	}
	if !l.sampledAt.IsZero() {
		l.list = append(l.list, shard.Second{
			FromUS: l.sampledAt.UnixMicro(), ToUS: now.UnixMicro(), CPUSeconds: u.cpu - l.lastUsage.cpu,
			RunDelayMS: max(u.runDelay-l.lastUsage.runDelay, 0).Milliseconds(), // delays of ended threads are lost
			StallMS:    stall.Milliseconds(), WaitMS: max(stall, wait).Milliseconds(), RSS: s.rss(),
		})
	}
	l.sampledAt, l.lastUsage = now, u
}

func (l *secondSamples) takeStall() (stall time.Duration) {
	stall, l.stall = l.stall, 0
	return stall
}
