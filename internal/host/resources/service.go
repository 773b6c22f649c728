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

// Service is what the system shows of a target's processes where they are on this machine. What counts does so since they
// started.
type Service struct {
	Periods     uint64  `json:"target_cpu_periods,omitempty"`   // of control groups with a limit of CPU
	Throttled   uint64  `json:"target_cpu_throttled,omitempty"` // those in which the limit was reached
	BackendRuns uint64  `json:"backend_timeslices,omitempty"`   // how often its threads were put on a core
	NginxRuns   uint64  `json:"nginx_timeslices,omitempty"`
	Ran         float64 `json:"target_threads_ran_seconds,omitempty"` // of both, to the nanosecond: other counts of CPU are in ticks of 10 ms
	NginxFull   float64 `json:"nginx_open_fds_share,omitempty"`       // of what the fullest of its processes may open
	NginxLog
}

// FromService reads what the system shows of the processes of backends, and of nginx where there is one (else 0).
func (s *Sample) FromService(backends []int, nginx int) {
	groups := map[string]bool{}
	for _, pid := range backends {
		s.BackendRuns += s.runs(pid)
		groups[groupOf(pid)] = true
	}
	if nginx != 0 {
		all, _ := family(nginx)
		for _, p := range all {
			s.NginxRuns += s.runs(int(p.Pid))
			s.NginxFull = max(s.NginxFull, openShare(int(p.Pid)))
		}
		groups[groupOf(nginx)] = true
	}
	for group := range groups {
		s.readThrottled(group)
	}
}

// runs is how often the threads of a process were put on a core; for how long they ran there is added.
func (s *Service) runs(pid int) uint64 {
	runs, ran := scheduled(pid)
	s.Ran += ran
	return runs
}

// scheduled is how often the threads of a process were put on a core, and for how many seconds they ran there.
func scheduled(pid int) (runs uint64, seconds float64) {
	threads, _ := procfs.AllThreads(pid)
	for _, thread := range threads {
		if stat, err := thread.Schedstat(); err == nil {
			runs += stat.RunTimeslices
			seconds += float64(stat.RunningNanoseconds) / 1e9
		}
	}
	return runs, seconds
}

// openShare is how many of its descriptors a process has open, of all that it may.
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

// groups are where control groups are mounted, by the controllers in /proc/PID/cgroup: "" is version 2.
var groups = map[string]string{"": "/sys/fs/cgroup", "cpu": "/sys/fs/cgroup/cpu", "cpu,cpuacct": "/sys/fs/cgroup/cpu,cpuacct"}

// groupOf is the folder of the control group that may limit the CPU of a process, "" where none is to be seen.
func groupOf(pid int) string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return ""
	}
	cgroups, _ := p.Cgroups()
	found := ""
	for _, group := range cgroups {
		controllers := strings.Join(group.Controllers, ",")
		if mount, ok := groups[controllers]; ok && (found == "" || controllers != "") { // of both, version 1 has the CPU
			found = filepath.Join(mount, group.Path)
		}
	}
	return found
}

// readThrottled adds how often a control group reached its limit of CPU.
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

// NginxLog counts the messages about full resources in nginx's error log.
type NginxLog struct {
	QueueFull     int `json:"nginx_log_backend_queue_full,omitempty"` // the accept queue of a backend's socket
	NoConnections int `json:"nginx_log_no_connections,omitempty"`     // worker_connections
	NoFiles       int `json:"nginx_log_no_fds,omitempty"`
}

// Add adds what the log of another nginx says.
func (l *NginxLog) Add(o NginxLog) {
	l.QueueFull += o.QueueFull
	l.NoConnections += o.NoConnections
	l.NoFiles += o.NoFiles
}

// A LogReader counts what comes in nginx's error log, from one sample to the next.
type LogReader struct {
	previous NginxLog
	offset   int64
}

// Read counts from the end of the last read. A missing file counts as empty.
func (l *LogReader) Read(path string) NginxLog {
	f, err := os.Open(path) // #nosec G304 -- the log of our own nginx
	if err != nil {
		return l.previous
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, l.offset, 64<<20))
	if err != nil {
		return l.previous
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	l.offset += int64(len(whole))
	l.previous.QueueFull += bytes.Count(whole, []byte("(11: Resource temporarily unavailable) while connecting to upstream"))
	l.previous.NoConnections += bytes.Count(whole, []byte("worker_connections are not enough"))
	l.previous.NoFiles += bytes.Count(whole, []byte("(24: Too many open files)"))
	return l.previous
}
