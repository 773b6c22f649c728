package resources

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/process"
)

// fromNginx adds the resources of a process of nginx. Pages that processes share count once per process, so the sum
// exceeds the memory that nginx uses.
func (s *Sample) fromNginx(p *process.Process) {
	timeslices, seconds := schedulerStats(int(p.Pid))
	s.NginxRuns += timeslices
	s.RunSeconds += seconds
	s.NginxFull = max(s.NginxFull, openShare(int(p.Pid)))
	if seconds > 0 {
		s.NginxCPU += seconds
	} else if t, err := p.Times(); err == nil { // Times counts in ticks of 10 ms, too coarse for a few requests
		s.NginxCPU += t.User + t.System
	}
	if m, err := p.MemoryInfo(); err == nil {
		s.NginxRSS += m.RSS
	}
	if n, err := p.NumThreads(); err == nil {
		s.NginxThreads += int(n)
	}
	if n, err := p.NumFDs(); err == nil {
		s.NginxFiles += int(n)
	}
}

// family returns a process and its direct children.
func family(pid int) ([]*process.Process, error) {
	p, err := process.NewProcess(int32(pid)) // #nosec G115 -- a process id
	if err != nil {
		return nil, err
	}
	// The kernel lists the children of each thread. p.Children would read the folder of each process of the machine.
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if len(lists) == 0 {
		children, _ := p.Children() // fails if p has no children
		return append(children, p), nil
	}
	members := []*process.Process{p}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // #nosec G304 -- an error if the thread has just ended
		for id := range strings.FieldsSeq(string(text)) {
			child, err := strconv.ParseInt(id, 10, 32)
			if err != nil {
				continue
			}
			if p, err := process.NewProcess(int32(child)); err == nil {
				members = append(members, p)
			}
		}
	}
	return members, nil
}

// FromStatus adds the values of nginx's status page (ngx_http_stub_status_module).
func (s *Sample) FromStatus(page io.Reader) error {
	var active int
	text := bufio.NewReader(page)
	if _, err := fmt.Fscanf(text, "Active connections: %d", &active); err != nil {
		return fmt.Errorf("read nginx's status page: %w", err)
	}
	s.NginxActive += active
	var accepted, handled, requests uint64
	if _, err := fmt.Fscanf(text, "\nserver accepts handled requests\n%d %d %d", &accepted, &handled, &requests); err == nil {
		s.NginxAccepted += accepted
		s.NginxRequests += requests
	}
	return nil
}
