// Package machine reads what a machine may do to the streams on it: packets that AWS drops, CPU time that the hypervisor
// takes, accept queues that overflow. It is one table of counters, a watch that reads them, and the record that a runner
// leaves of the machine it ran on.
package machine

import "time"

// An Effect is what a counter that moved does to a verdict.
type Effect int

// The effects.
const (
	Informational Effect = iota // nothing: the report shows it, or another counter is held against it
	Silences                    // packets did not come through: what a runner's streams suffered in that time is in doubt; else a warning
	Delays                      // programs could not run: how late the messages of a runner there were is in doubt, as by a stall
	Refuses                     // a warning where the target is
	Warns                       // a warning
	Suspends                    // the machine stood still, so what its streams received in that time proves nothing
)

// A Counter is one of a machine's.
type Counter struct {
	Name   string // as the kernel, or AWS's driver, names it
	Effect Effect
	// Namespaced counters are those of a network namespace: containers on one machine have their own. All others are of
	// the whole machine.
	Namespaced bool
	Metric     string // of node_exporter, "": none; where it has several series, they add up
	Limit      string // name of the limit of what is no counter but a number that may be as high as that
	LimitOf    string // node_exporter's metric of that limit
	AWSAction  string // what AWS did to packets when this one moved
	Meaning    string // and why
	Remedy     string
}

// The counters that are named elsewhere.
const (
	Steal     = "steal" // seconds, of all cores together
	Overflows = "ListenOverflows"
	Drops     = "ListenDrops"
	Retrans   = "RetransSegs"
	Repeated  = "TCPSynRetrans"
	Sent      = "OutSegs"
	Killed    = "oom_kill"
	Tracked   = "nf_conntrack_count"
	Suspended = "suspended"  // seconds: CLOCK_BOOTTIME less CLOCK_MONOTONIC
	ClockStep = "clock_step" // seconds by which the wall clock was set, forwards and backwards
	LinkLocal = "linklocal_allowance_exceeded"
)

// SuspendedResolution is the shortest suspension that is recognised: the clocks are not read at the same instant.
const SuspendedResolution = 100 * time.Millisecond

const larger = "use an instance type that is allowed more, or more machines"

// Counters are all counters that are read, in the order of reports. Those of AWS's driver (ENA) exist on machines of
// AWS only; see "Monitor network performance for ENA settings" at docs.aws.amazon.com.
var Counters = []Counter{
	{
		Name: "bw_in_allowance_exceeded", Effect: Silences, Namespaced: true, Metric: "node_ethtool_bw_in_allowance_exceeded",
		AWSAction: "held back or dropped", Meaning: "more bytes came in than the instance type is allowed", Remedy: larger,
	},
	{
		Name: "bw_out_allowance_exceeded", Effect: Silences, Namespaced: true, Metric: "node_ethtool_bw_out_allowance_exceeded",
		AWSAction: "held back or dropped", Meaning: "more bytes went out than the instance type is allowed", Remedy: larger,
	},
	{
		Name: "pps_allowance_exceeded", Effect: Silences, Namespaced: true, Metric: "node_ethtool_pps_allowance_exceeded",
		AWSAction: "held back or dropped", Meaning: "more packets a second than the instance type is allowed", Remedy: larger,
	},
	{
		Name: "conntrack_allowance_exceeded", Effect: Silences, Namespaced: true, Metric: "node_ethtool_conntrack_allowance_exceeded",
		AWSAction: "dropped", Meaning: "more tracked connections than the instance type is allowed, so new ones could not be made", Remedy: larger,
	},
	{ // to the name server, the clock and the metadata of the instance: no stream goes there
		Name: LinkLocal, Effect: Warns, Namespaced: true, Metric: "node_ethtool_linklocal_allowance_exceeded",
		AWSAction: "dropped", Meaning: "too many packets a second to the name server, the clock or the instance's metadata", Remedy: "look for what asks them that often",
	},
	{Name: Steal, Effect: Delays, Metric: `node_cpu_seconds_total{mode="steal"}`},
	{Name: Overflows, Effect: Refuses, Namespaced: true, Metric: "node_netstat_TcpExt_ListenOverflows"},
	{Name: Drops, Effect: Refuses, Namespaced: true, Metric: "node_netstat_TcpExt_ListenDrops"}, // the overflows among them
	{Name: Repeated, Effect: Informational, Namespaced: true, Metric: "node_netstat_TcpExt_TCPSynRetrans"},
	{Name: Retrans, Effect: Warns, Namespaced: true, Metric: "node_netstat_Tcp_RetransSegs"},
	{Name: Sent, Effect: Informational, Namespaced: true, Metric: "node_netstat_Tcp_OutSegs"},
	{
		Name: Tracked, Effect: Warns, Namespaced: true, Metric: "node_nf_conntrack_entries",
		Limit: "nf_conntrack_max", LimitOf: "node_nf_conntrack_entries_limit",
	},
	{Name: Killed, Effect: Warns, Metric: "node_vmstat_oom_kill"},
	{Name: Suspended, Effect: Suspends},
	{Name: ClockStep, Effect: Warns},
}

// CounterOf returns a counter by its name.
func CounterOf(name string) (Counter, bool) {
	for _, c := range Counters {
		if c.Name == name {
			return c, true
		}
	}
	return Counter{}, false
}

// ByAWS reports whether it is a counter of AWS's driver.
func (c *Counter) ByAWS() bool { return c.AWSAction != "" }

// timed reports whether the times of increases are kept. Segments are sent all the time.
func (c *Counter) timed() bool {
	return c.Effect != Informational && c.Name != Retrans && c.Limit == ""
}
