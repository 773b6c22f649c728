package preflight

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
)

// Maximum memory of an open TLS connection in bytes, rounded up from measurements (docs/results/handshake.md).
const (
	tlsStreamBytes       = 24 << 10 // in a runner
	tlsTargetStreamBytes = 56 << 10 // in a backend that soak starts; net/http runs a goroutine per connection
)

// Users describes the load that the script of a suite declares. VUs and Connections are totals for all Runners.
type Users struct {
	VUs, Runners int
	Connections  int  // maximum number of open connections; if it is below VUs, VUs is the maximum
	Sources      int  // number of source addresses per runner; 0: unknown, so ports are not checked
	Local        bool // the service runs on this host
	Proxied      bool // the service is behind nginx on this host
	Handshakes   bool // each connection requires a TLS handshake
}

// Check returns errors, which prevent the run, and warnings about conditions that may disturb it.
func (u Users) Check(m Machine) (errs, warnings []string) {
	connections := max(u.Connections, u.VUs)
	runnerConnections := u.connectionsPerRunner(connections)
	need, process := clamp.Uint64(Files(runnerConnections)), "a runner with "+openConnections(runnerConnections)
	if all := clamp.Uint64(Files(connections)); u.Local && all > need {
		need, process = all, "the service with "+openConnections(connections)
	}
	if proxied := clamp.Uint64(2 * Files(connections)); u.Proxied && proxied > need {
		need, process = proxied, "nginx with "+openConnections(connections)+" on each side"
	}
	errs = m.checkFiles(need, process, "lower the number of connections")
	if u.Sources > 0 && m.Ports > 0 && m.Ports*u.Sources < runnerConnections {
		errs = append(errs, fmt.Sprintf("%d ephemeral ports are too few for %d open connections of a runner to one address; run `sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"`, add addresses (K6_LOCAL_IPS), or lower the number of connections",
			m.Ports*u.Sources, runnerConnections))
	}
	if tooMany := m.checkRunners(u.Runners); len(tooMany) > 0 {
		errs = append(errs, tooMany...)
	} else if tooLittle := m.checkMemory(u.Memory(), "lower the number of connections"); u.Connections > u.VUs {
		errs = append(errs, tooLittle...) // these connections stay open, so the run certainly uses their memory
	} else {
		warnings = tooLittle
	}
	return errs, append(warnings, u.coreWarnings(m)...)
}

func (u Users) coreWarnings(m Machine) (warnings []string) {
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

func openConnections(n int) string { return format.Plural(n, "open connection", "open connections") }

func (u Users) connectionsPerRunner(n int) int { return (n + u.Runners - 1) / u.Runners }

// Memory returns the maximum memory of the runners in bytes. If more connections than virtual users stay open, it adds
// the TLS memory of all connections, in runners and in a service on this host.
func (u Users) Memory() uint64 {
	bytes := u.Runners*perRunner + u.VUs*perVU
	if u.Connections > u.VUs {
		bytes += u.Connections * tlsStreamBytes
		if u.Local {
			bytes += u.Connections * tlsTargetStreamBytes
		}
	}
	return clamp.Uint64(bytes)
}
