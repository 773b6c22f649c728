package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A CPUUse has the times of a load generator in seconds, and its longest stall. CPU and Wait are sums over its threads.
type CPUUse struct {
	CPU   float64       // time on a core
	Wait  float64       // time ready to run, without a core
	Wall  float64       // elapsed time, summed over the runners
	Stall time.Duration // maximum delay with which a process woke up
}

// maxWaitShare is the maximum share of the time for which threads may wait for a core.
const maxWaitShare = .05

// HasLongWait reports whether threads waited for a core for over maxWaitShare of the time, and longer than they ran.
func (u CPUUse) HasLongWait() bool {
	return u.Wall > 0 && u.Wait > maxWaitShare*u.Wall && u.Wait > u.CPU
}

func useOf(m *shard.Merged) (u CPUUse) {
	for _, r := range m.Runners {
		if !r.HasData() { // a process that is starting waits longer than it runs
			continue
		}
		u.CPU += r.CPUSeconds
		u.Wait += r.RunDelaySeconds
		u.Stall = max(u.Stall, time.Duration(r.StallMaxUS)*time.Microsecond)
		u.Wall += max(float64(r.EndedUS-r.StartedUS)/1e6, 0)
	}
	return u
}

func generator(m *shard.Merged) (g Generator) {
	u := useOf(m)
	g.CPUSeconds, g.RunDelaySeconds, g.StallMaxMS = u.CPU, u.Wait, format.InMilliseconds(u.Stall)
	for _, r := range m.Runners {
		g.GCPauseMaxMS = max(g.GCPauseMaxMS, float64(r.GCPauseMaxUS)/1000)
	}
	return g
}

// isSaturated reports whether the load generator may have delayed messages, or waited for a CPU. Such waits count even
// if the control group was on time, because slopes are judged in milliseconds.
func (s *Streams) isSaturated() bool { return s.generatorDelay() > 0 || useOf(s.m).HasLongWait() }

// generatorDelay returns the longest delay of the load generator if it can make a message late (see explains);
// otherwise 0. Without a conclusive control group, it is the longest stall of a runner.
func (s *Streams) generatorDelay() time.Duration {
	if s.Control.decides() {
		return max(s.Control.longest, s.Control.longestStall)
	}
	if stall := useOf(s.m).Stall; stall > s.m.Plan.LateLimit()/2 {
		return stall
	}
	return 0
}

// portsCheck returns an unmet check if the generator lacked a port, a descriptor or an IPv6 address for a connection;
// otherwise nil.
func (s *Streams) portsCheck() []Check {
	c := Check{
		ID: CheckPorts, Name: "connects that failed on the load generator", Limit: "0", ExplainedBy: SignalGenerator,
		Why: "the service was not tested with these clients",
	}
	sum := 0
	for _, lack := range []struct{ code, remedy string }{
		{shard.CodeNoPort, "widen net.ipv4.ip_local_port_range, or add machines for runners"},
		{shard.CodeNoDescriptor, "raise ulimit -n, or add runners"},
		{shard.CodeNoIPv6, "use an IPv4 address of the service, or enable IPv6"},
	} {
		reason := shard.LackReasons[lack.code]
		add := func(n int, one, many string) {
			if n > 0 {
				sum += n
				c.Reasons = append(c.Reasons, fmt.Sprintf("%s failed, because the load generator had %s; %s", format.Plural(n, one, many), reason, lack.remedy))
			}
		}
		add(s.RefusedAttempts[reason], "connect", "connects")
		if s.EndRequests != nil {
			add(int(s.EndRequests.Failures[lack.code]), "request to end a stream", "requests to end a stream")
		}
	}
	if n := s.unpublishedLocally(); n > 0 {
		sum += clamp.Int(n)
		c.Reasons = append(c.Reasons, fmt.Sprintf("%s of the publisher failed, because the load generator had no local port, file descriptor or IPv6 address; "+
			"widen net.ipv4.ip_local_port_range, raise ulimit -n, add machines for runners, or enable IPv6", format.Plural(n, "connect", "connects")))
	}
	if sum == 0 {
		return nil
	}
	c.Actual = fmt.Sprint(sum)
	return []Check{c.AsDoubt()}
}

// GeneratorCheck returns the check that the load generator did not delay messages. An unmet check is a warning, because
// a client that reads late loses no messages.
func (s *Streams) GeneratorCheck() Check {
	u, limit := useOf(s.m), format.Duration(s.m.Plan.LateLimit()/2)
	c := Check{
		ID: CheckGenerator, Name: "load generator on time", Severity: SeverityWarning, Why: "measured times include delays of the load generator",
		Limit:  fmt.Sprintf("stall under %s; CPU wait under %.0f %% of the time, or shorter than CPU time", limit, 100*maxWaitShare),
		Actual: fmt.Sprintf("stall %s; runner threads waited %.1f s for a CPU and ran for %.1f s", format.Duration(u.Stall), u.Wait, u.CPU),
	}
	hasControl := s.Control.decides()
	if hasControl {
		c.Limit = fmt.Sprintf("control group under %s late", limit)
		c.Actual = fmt.Sprintf("control group at most %s late; runner threads waited %.1f s for a CPU and ran for %.1f s", format.Milliseconds(s.Control.LongestMS), u.Wait, u.CPU)
	}
	delay := s.generatorDelay()
	if c.Pass = delay == 0 && (hasControl || !u.HasLongWait()); c.Pass {
		return c
	}
	var causes []string
	switch {
	case hasControl:
		causes = s.Control.delays()
	case delay > 0:
		causes = append(causes, "a runner stalled for "+format.Duration(delay))
	}
	if u.HasLongWait() {
		causes = append(causes, fmt.Sprintf("runner threads waited %.1f s in total (%.0f %% of the time) for a CPU that other processes used, and ran for %.1f s", u.Wait, 100*u.Wait/u.Wall, u.CPU))
	}
	c.Actual = strings.Join(causes, ", and ")
	c.Reasons = []string{c.Actual}
	if longest := max(delay, u.Stall); longest > 0 { // a wait without a stall may have delayed nothing
		c.Reasons[0] += fmt.Sprintf("; times may be up to %s too long", format.Duration(longest))
	}
	if delay > 0 {
		c.Reasons[0] = s.Control.suspectState() + ": " + c.Reasons[0]
	}
	if s.Evidence.Kind != ByClock {
		c.Reasons[0] += "; counts are not affected"
	}
	return c
}
