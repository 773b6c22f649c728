// Package preflight looks before a soak leaps: limits that would break the run in its middle
// are found before it begins, each with the setting and the number it needs.
package preflight

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/mem"

	"github.com/sse-soak/sse-soak/plan"
)

// What a connection takes, in bytes, rounded up from what `make bench` measures.
const (
	perVU         = 400 << 10 // a virtual user when it sends its DELETE
	perConnection = 12 << 10  // an event stream in a runner
	perNginx      = 12 << 10  // both sides of a proxied stream
	perBackend    = 3 << 10
	perRunner     = 60 << 20 // k6 itself
	spareFiles    = 512      // beside connections, for any process
)

// Machine is what this host offers. A figure of 0 is not known and not checked.
type Machine struct {
	Files     uint64 `json:"open_files"`             // per process, the hard limit: every process raises itself to it
	Ports     int    `json:"ephemeral_ports"`        // for one source and one target address
	Backlog   int    `json:"accept_backlog"`         // net.core.somaxconn
	Available uint64 `json:"memory_available_bytes"` // at the start
}

// Look reads this machine's limits.
func Look() Machine {
	m := Machine{Files: openFiles()}
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if f := strings.Fields(string(text)); len(f) == 2 {
			low, lowErr := strconv.Atoi(f[0])
			high, highErr := strconv.Atoi(f[1])
			if lowErr == nil && highErr == nil {
				m.Ports = high - low + 1
			}
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

// Check says what would break the plan, and what may disturb it. local says that the target
// runs on this host too.
func Check(p plan.Plan, m Machine, local bool) (errs, warnings []string) {
	perRunnerConnections := (p.Connections + p.Runners - 1) / p.Runners
	need := uint64(perRunnerConnections + spareFiles)
	who := fmt.Sprintf("a runner with %d connections", perRunnerConnections)
	if proxied := uint64(2*p.Connections + 2*spareFiles); local && proxied > need {
		need, who = proxied, fmt.Sprintf("nginx with %d connections, two sides each,", p.Connections)
	}
	if m.Files > 0 && m.Files < need {
		errs = append(errs, fmt.Sprintf("the limit of open files is %d, %s needs %d: raise it with `ulimit -n %d` (hard limit, /etc/security/limits.conf) or lower CONNECTIONS",
			m.Files, who, need, need))
	}
	if m.Ports > 0 && m.Ports < p.Connections {
		errs = append(errs, fmt.Sprintf("there are %d ephemeral ports for %d connections to one address: `sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"`, or lower CONNECTIONS",
			m.Ports, p.Connections))
	}
	if m.Available > 0 {
		bytes := Memory(p, local)
		if m.Available < bytes {
			warnings = append(warnings, fmt.Sprintf("%d MiB of memory are available, the run may take %d MiB: raise CONNECTIONS_PER_VU to share virtual users, or lower CONNECTIONS",
				m.Available>>20, bytes>>20))
		}
	}
	if local && m.Backlog > 0 && m.Backlog < min(p.Connections, 1024) {
		warnings = append(warnings, fmt.Sprintf("the accept queue is capped at %d, and %d clients connect at once: connects may take 1 s and more; `sysctl -w net.core.somaxconn=4096`",
			m.Backlog, p.Connections))
	}
	return errs, warnings
}

// Memory is what a plan may take on one host, in bytes.
func Memory(p plan.Plan, local bool) uint64 {
	bytes := p.Runners*perRunner + p.Iterations()*perVU + p.Connections*perConnection
	if local {
		bytes += p.Connections * (perNginx + perBackend)
	}
	return uint64(bytes) //nolint:gosec // a sum of products of positive numbers
}
