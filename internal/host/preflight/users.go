package preflight

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/clamp"
)

// What a connection that is held over TLS takes at most, in bytes, rounded up from what was measured (docs/results/handshake.md).
const (
	filesPerStream       = 24 << 10 // in a runner
	filesPerTargetStream = 56 << 10 // in a backend that soak starts, a goroutine of net/http each
)

// Users are what the script of a suite of requests asks for, over all runners.
type Users struct {
	VUs, Runners int
	Connections  int  // open at a time; 0: one of each virtual user
	Sources      int  // addresses from which each runner connects; 0: as many as it needs
	Local        bool // the service runs on this host too
	Proxied      bool // behind nginx, on this host
	Handshakes   bool // each connection computes a TLS handshake
}

// Check lists what would break a suite of requests, and what may disturb it.
func (u Users) Check(m Machine) (errs, warnings []string) {
	connections := max(u.Connections, u.VUs)
	need, user := clamp.Uint64(Files(u.perRunner(connections))), fmt.Sprintf("a runner with %d connections at a time", u.perRunner(connections))
	if all := clamp.Uint64(Files(connections)); u.Local && all > need {
		need, user = all, fmt.Sprintf("the service with %d connections at a time", connections)
	}
	if proxied := clamp.Uint64(2 * Files(connections)); u.Proxied && proxied > need {
		need, user = proxied, fmt.Sprintf("nginx with %d connections at a time, two sides each,", connections)
	}
	if m.Files > 0 && m.Files < need {
		errs = append(errs, fmt.Sprintf("the limit of open files is %d, %s needs %d: raise it with `ulimit -n %d` (hard limit, /etc/security/limits.conf) or ask for less at a time",
			m.Files, user, need, need))
	}
	if ports := u.perRunner(connections); u.Sources > 0 && m.Ports > 0 && m.Ports*u.Sources < ports {
		errs = append(errs, fmt.Sprintf("there are %d ephemeral ports for %d connections of a runner at a time to one address: `sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"`, more addresses (K6_LOCAL_IPS), or ask for less at a time",
			m.Ports*u.Sources, ports))
	}
	if bytes := u.Memory(); m.Available > 0 && m.Available < bytes {
		sentence := fmt.Sprintf("%d MiB of memory are available, the run may use %d MiB: ask for less at a time", m.Available>>20, bytes>>20)
		if u.Connections > u.VUs { // which stay open: there is no way back
			return append(errs, sentence), nil
		}
		warnings = append(warnings, sentence)
	}
	return errs, append(warnings, u.cores(m)...)
}

// cores returns warnings about too few cores for handshakes.
func (u Users) cores(m Machine) (warnings []string) {
	if !u.Handshakes || m.Cores == 0 {
		return nil
	}
	if m.Procs < m.Cores {
		warnings = append(warnings, fmt.Sprintf("runners compute handshakes on at most %d of %d cores; unset GOMAXPROCS, or raise the CPU limit of the container", m.Procs, m.Cores))
	}
	if u.Local && m.Cores < 2 {
		warnings = append(warnings, "runners and service share one core, so rates and times measure both together; run the service on another machine")
	}
	return warnings
}

func (u Users) perRunner(n int) int { return (n + u.Runners - 1) / u.Runners }

// Memory is what the runners together may take, and a service here, in bytes.
func (u Users) Memory() uint64 {
	bytes := u.Runners*perRunner + u.VUs*perVU
	if u.Connections > u.VUs {
		bytes += u.Connections * filesPerStream
		if u.Local {
			bytes += u.Connections * filesPerTargetStream
		}
	}
	return clamp.Uint64(bytes)
}
