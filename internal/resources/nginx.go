package resources

import (
	"bufio"
	"fmt"
	"io"

	"github.com/shirou/gopsutil/v4/process"
)

// FromNginx adds up the master process and its workers. Pages they share count once each, so
// the sum is somewhat above what nginx takes.
func (s *Sample) FromNginx(master int) {
	p, err := process.NewProcess(int32(master))
	if err != nil {
		return
	}
	all := []*process.Process{p}
	if workers, err := p.Children(); err == nil {
		all = append(all, workers...)
	}
	for _, p := range all {
		if m, err := p.MemoryInfo(); err == nil {
			s.NginxRSS += m.RSS
		}
		if t, err := p.Times(); err == nil {
			s.NginxCPU += t.User + t.System
		}
		if n, err := p.NumFDs(); err == nil {
			s.NginxFiles += int(n)
		}
	}
}

// FromStatus adds what is on nginx's status page (ngx_http_stub_status_module).
func (s *Sample) FromStatus(page io.Reader) error {
	var active int
	if _, err := fmt.Fscanf(bufio.NewReader(page), "Active connections: %d", &active); err != nil {
		return fmt.Errorf("read nginx's status page: %w", err)
	}
	s.NginxActive += active
	return nil
}
