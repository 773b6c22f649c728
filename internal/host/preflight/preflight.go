// Package preflight checks this machine before a run: its limits, its clock, and the programs that the commands of
// `soak` and `make` need. For each problem it names a remedy, such as a command or the value of a setting.
package preflight

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/mem"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// Maximum memory in bytes, and one minimum, rounded up from measurements (docs/results).
const (
	perVU      = 400 << 10 // of a virtual user while it ends its stream by a DELETE request
	perNginx   = 12 << 10  // of both sides of a proxied stream in nginx
	perBackend = 3 << 10   // of a stream in the backend
	perRunner  = 64 << 20  // of a k6 process without streams
	minRunner  = 32 << 20  // minimum of a k6 process without streams
)

// spareFiles is the number of files that a process may need to open in addition to its connections.
const spareFiles = 512

// A StreamCost has the costs of one stream in a runner with thousands of streams. The costs depend on the protocol.
type StreamCost struct {
	Memory        int     // maximum bytes, while thousands of streams open or close; at other times a third to a half of that
	CPUPerMessage float64 // CPU seconds per message
}

// StreamCostOf returns the costs of each stream of a plan.
func StreamCostOf(p *plan.Plan) StreamCost {
	if p.HTTPVersion == plan.HTTP2 {
		return StreamCost{10 << 10, 25e-6}
	}
	if strings.HasPrefix(p.BackendURL, "https:") {
		return StreamCost{24 << 10, 20e-6}
	}
	return StreamCost{18 << 10, 16e-6}
}

// PerTargetStream is the memory, in bytes, that nginx and the backend together use per stream.
const PerTargetStream = perNginx + perBackend

// Files returns the number of open files that a process with the given number of streams needs.
func Files(streams int) int { return streams + spareFiles }

// A Machine has the limits of one host. 0 means that a value is unknown; checks skip it.
type Machine struct {
	Files     uint64 `json:"open_files"`             // hard limit per process; each process raises its soft limit to it
	Ports     int    `json:"ephemeral_ports"`        // for one source and one target address
	Backlog   int    `json:"accept_backlog"`         // net.core.somaxconn
	Available uint64 `json:"memory_available_bytes"` // at the start
	Cores     int    `json:"cores,omitempty"`
	Procs     int    `json:"gomaxprocs,omitempty"` // cores that a Go program may use: GOMAXPROCS, or the cgroup's limit
}

// Read returns the limits of this machine.
func Read() Machine {
	m := Machine{Files: openFiles(), Cores: runtime.NumCPU(), Procs: runtime.GOMAXPROCS(0)}
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var low, high int
		if _, err := fmt.Sscan(string(text), &low, &high); err == nil {
			m.Ports = high - low + 1
		}
	}
	if text, err := os.ReadFile("/proc/sys/net/core/somaxconn"); err == nil {
		m.Backlog, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if v, err := mem.VirtualMemory(); err == nil {
		m.Available = v.Available
	}
	return m
}

// Services describes the services of a plan.
type Services struct {
	Count   int  // number of addresses, distributed over the runners
	Local   bool // the services run on this host
	Proxied bool // the services are behind nginx on this host
}

// Check returns errors, which prevent the run, and warnings about conditions that may disturb it.
func Check(p plan.Plan, m Machine, s Services) (errs, warnings []string) {
	perService := p.PerBackend(s.Count)
	required, process := requiredFiles(p, s, perService)
	errs = m.checkFiles(required, process, "lower CONNECTIONS")
	if sockets := p.Sockets(perService); m.Ports > 0 && m.Ports < sockets {
		errs = append(errs, fmt.Sprintf("%d ephemeral ports are too few for %d connections to one address; run `sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"`, or lower CONNECTIONS",
			m.Ports, sockets))
	}
	if tooMany := m.checkRunners(p.Runners); len(tooMany) > 0 {
		errs = append(errs, tooMany...)
	} else {
		warnings = m.checkMemory(Memory(p, s), "raise CONNECTIONS_PER_VU to share virtual users, or lower CONNECTIONS")
	}
	if s.Local && m.Backlog > 0 && m.Backlog < min(perService, 1024) {
		warnings = append(warnings, fmt.Sprintf("the accept queue is limited to %d, but %d clients connect at once, so connects may take over 1 s; run `sysctl -w net.core.somaxconn=4096`",
			m.Backlog, perService))
	}
	return errs, warnings
}

// checkFiles returns an error with the remedy if the limit on open files is too low for a process.
func (m Machine) checkFiles(need uint64, process, remedy string) []string {
	if m.Files == 0 || m.Files >= need {
		return nil
	}
	return []string{fmt.Sprintf("the limit on open files is %d, but %s needs %d; raise it with `ulimit -n %d` (hard limit, /etc/security/limits.conf), or %s",
		m.Files, process, need, need, remedy)}
}

// checkMemory returns a sentence with the remedy if the run may use more memory than is available.
func (m Machine) checkMemory(bytes uint64, remedy string) []string {
	if m.Available == 0 || m.Available >= bytes {
		return nil
	}
	return []string{fmt.Sprintf("%d MiB of memory is available, but the run may use %d MiB; %s", m.Available>>20, bytes>>20, remedy)}
}

// checkRunners returns an error if there are more runners than cores, and the memory is too small for them even without
// streams.
func (m Machine) checkRunners(n int) []string {
	bytes := clamp.Uint64(n * minRunner)
	if m.Available == 0 || m.Available >= bytes || n <= m.Cores {
		return nil
	}
	return []string{fmt.Sprintf("%s at least %d MiB of memory, but %d MiB is available; lower RUNNERS (one per core is enough)",
		format.Plural(n, "runner needs", "runners need"), bytes>>20, m.Available>>20)}
}

// requiredFiles returns how many files the process with the most open files needs, and describes that process.
func requiredFiles(p plan.Plan, s Services, perService int) (files uint64, process string) {
	sockets := p.Sockets(p.PerRunner())
	connections := sockets + p.Control
	process = "a runner with " + format.Plural(sockets, "connection", "connections")
	if s.Local && perService > connections {
		connections, process = perService, "a backend with "+format.Plural(perService, "connection", "connections")
	}
	files = clamp.Uint64(Files(connections))
	if proxied := clamp.Uint64(2 * Files(perService)); s.Proxied && proxied > files {
		return proxied, fmt.Sprintf("nginx with %s on each side", format.Plural(perService, "connection", "connections"))
	}
	return files, process
}

// Memory returns the maximum memory of a plan on one host in bytes.
func Memory(p plan.Plan, s Services) uint64 {
	bytes := p.Runners*perRunner + p.Iterations()*perVU + p.Connections*StreamCostOf(&p).Memory
	if s.Local {
		bytes += p.Connections * perBackend
	}
	if s.Proxied {
		bytes += p.Connections * perNginx
	}
	return clamp.Uint64(bytes)
}
