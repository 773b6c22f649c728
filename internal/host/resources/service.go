package resources

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Service has the resources of the target's processes on this machine. Counters count from the start of the processes
// or of their control groups.
type Service struct {
	Periods     uint64 `json:"target_cpu_periods,omitempty"`   // of control groups with a CPU limit
	Throttled   uint64 `json:"target_cpu_throttled,omitempty"` // periods in which the limit was reached
	BackendRuns uint64 `json:"backend_timeslices,omitempty"`   // number of times that backend threads were scheduled
	NginxRuns   uint64 `json:"nginx_timeslices,omitempty"`
	// RunSeconds is the CPU time of backends and nginx, with a resolution of 1 ns.
	RunSeconds float64 `json:"target_threads_ran_seconds,omitempty"`
	// NginxFull is the highest share of the descriptor limit that any one nginx process uses.
	NginxFull float64 `json:"nginx_open_fds_share,omitempty"`
	NginxLog
}

// FromService adds the resources of backends by process id, and of nginx by the id of its master process (0: no nginx).
func (s *Sample) FromService(backends []int, nginx int) {
	groups := map[string]bool{}
	for _, pid := range backends {
		timeslices, seconds := schedulerStats(pid)
		s.BackendRuns += timeslices
		s.RunSeconds += seconds
		groups[groupOf(pid)] = true
	}
	if nginx != 0 {
		all, _ := family(nginx)
		for _, p := range all {
			s.fromNginx(p)
		}
		groups[groupOf(nginx)] = true
	}
	for group := range groups {
		s.readThrottled(group)
	}
}

// schedulerStats returns the number of times that the threads of a process were scheduled, and their CPU time in
// seconds.
func schedulerStats(pid int) (timeslices uint64, seconds float64) {
	threads, _ := procfs.AllThreads(pid)
	for _, thread := range threads {
		if stat, err := thread.Schedstat(); err == nil {
			timeslices += stat.RunTimeslices
			seconds += float64(stat.RunningNanoseconds) / 1e9
		}
	}
	return timeslices, seconds
}

// openShare returns the number of open descriptors of a process as a share of its limit; 0 if either is unknown.
func openShare(pid int) float64 {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	open, openErr := p.FileDescriptorsLen()
	limits, limitsErr := p.Limits()
	if openErr != nil || limitsErr != nil || limits.OpenFiles == 0 {
		return 0
	}
	return float64(open) / float64(limits.OpenFiles)
}

// groupMounts maps the controllers in a line of /proc/PID/cgroup to the mount point of their groups. The key "" is for
// version 2.
var groupMounts = map[string]string{"": "/sys/fs/cgroup", "cpu": "/sys/fs/cgroup/cpu", "cpu,cpuacct": "/sys/fs/cgroup/cpu,cpuacct"}

// groupOf returns the folder of the control group that may limit the CPU of a process, or "" if it is unknown.
func groupOf(pid int) string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return ""
	}
	cgroups, _ := p.Cgroups()
	folder := ""
	for _, group := range cgroups {
		controllers := strings.Join(group.Controllers, ",")
		// If both versions are mounted, version 1 limits the CPU.
		if mount, ok := groupMounts[controllers]; ok && (folder == "" || controllers != "") {
			folder = filepath.Join(mount, group.Path)
		}
	}
	return folder
}

func (s *Sample) readThrottled(group string) {
	if group == "" {
		return
	}
	text, err := os.ReadFile(filepath.Join(group, "cpu.stat")) // #nosec G304 -- a file of the service's control group
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(value, 10, 64)
		switch {
		case err != nil:
		case name == "nr_periods":
			s.Periods += n
		case name == "nr_throttled":
			s.Throttled += n
		}
	}
}

// NginxLog counts the entries about exhausted resources in nginx's error log.
type NginxLog struct {
	QueueFull     int `json:"nginx_log_backend_queue_full,omitempty"` // the accept queue of a backend's socket was full
	NoConnections int `json:"nginx_log_no_connections,omitempty"`     // worker_connections was reached
	NoFiles       int `json:"nginx_log_no_fds,omitempty"`
}

// Add adds the counts of another nginx.
func (l *NginxLog) Add(o NginxLog) {
	l.QueueFull += o.QueueFull
	l.NoConnections += o.NoConnections
	l.NoFiles += o.NoFiles
}

// A LogReader counts the entries of nginx's error log for an NginxLog.
type LogReader struct {
	counts NginxLog // so far
	offset int64    // of the first byte that has not been read
}

// Read continues after the last complete line of the previous call, and returns the counts so far. One call reads at
// most 64 MiB. If the file cannot be read, the counts do not change.
func (l *LogReader) Read(path string) NginxLog {
	f, err := os.Open(path) // #nosec G304 -- the log of the nginx that soak started
	if err != nil {
		return l.counts
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, l.offset, 64<<20))
	if err != nil {
		return l.counts
	}
	lines := text[:bytes.LastIndexByte(text, '\n')+1] // an incomplete line is read later
	l.offset += int64(len(lines))
	l.counts.QueueFull += bytes.Count(lines, []byte("(11: Resource temporarily unavailable) while connecting to upstream"))
	l.counts.NoConnections += bytes.Count(lines, []byte("worker_connections are not enough"))
	l.counts.NoFiles += bytes.Count(lines, []byte("(24: Too many open files)"))
	return l.counts
}
