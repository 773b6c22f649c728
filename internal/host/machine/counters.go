// Package machine records host interference with streams, such as packets that AWS drops, CPU time that the hypervisor
// steals, and full accept queues. It contains a table of counters, a Watch that reads them, and the Record of a run.
package machine

import "time"

// An Effect is the way in which an increase of a counter affects a verdict.
type Effect int

// The values of Effect.
const (
	Informational Effect = iota // none; the report shows the counter, or compares it with another one
	Silences                    // packets were held back or dropped: a runner's faults at that time are inconclusive; a target gets a warning
	Delays                      // programs could not run: a runner's lateness at that time is inconclusive
	Refuses                     // the kernel dropped connection attempts; a warning on the machine of the target
	Warns                       // a warning
	Suspends                    // the machine did not run, so results of its streams in that time are inconclusive
)

// A Counter describes one counter of a machine.
type Counter struct {
	Name   string // in the kernel or in AWS's driver, if they have the counter
	Effect Effect
	// Namespaced reports whether each network namespace, such as a container's, has its own counter.
	Namespaced bool
	Metric     string // metric of node_exporter, summed over its series; "": none
	Limit      string // name of a gauge's limit; "": the value is not a gauge
	LimitOf    string // metric of the limit in node_exporter; "": none
	AWSAction  string // what AWS did to packets if the counter increased; "": not a counter of AWS's driver
	Meaning    string // reason for an increase
	Remedy     string
}

// Names of counters.
const (
	Steal            = "steal" // seconds, summed over all cores
	Overflows        = "ListenOverflows"
	Drops            = "ListenDrops"
	Retrans          = "RetransSegs"
	SYNRetrans       = "TCPSynRetrans"
	OutSegs          = "OutSegs"
	OOMKills         = "oom_kill"
	ConntrackEntries = "nf_conntrack_count"
	Suspension       = "suspended"  // seconds: CLOCK_BOOTTIME minus CLOCK_MONOTONIC
	ClockStep        = "clock_step" // seconds by which the wall clock was set, forward and backward
	LinkLocal        = "linklocal_allowance_exceeded"
)

// SuspendedResolution is the duration of the shortest detectable suspension. Shorter ones are undetectable, because the
// clocks are not read at the same instant.
const SuspendedResolution = 100 * time.Millisecond

const largerType = "use a larger instance type, or more machines"

// Counters lists all counters in the order of reports. Counters of AWS's driver (ENA) exist only on AWS; see "Monitor
// network performance for ENA settings" at docs.aws.amazon.com.
var Counters = []Counter{
	{
		Name: "bw_in_allowance_exceeded", Effect: Silences, Namespaced: true, Metric: "node_ethtool_bw_in_allowance_exceeded",
		AWSAction: "held back or dropped", Meaning: "received bytes exceeded the allowance of the instance type", Remedy: largerType,
	},
	{
		Name: "bw_out_allowance_exceeded", Effect: Silences, Namespaced: true, Metric: "node_ethtool_bw_out_allowance_exceeded",
		AWSAction: "held back or dropped", Meaning: "sent bytes exceeded the allowance of the instance type", Remedy: largerType,
	},
	{
		Name: "pps_allowance_exceeded", Effect: Silences, Namespaced: true, Metric: "node_ethtool_pps_allowance_exceeded",
		AWSAction: "held back or dropped", Meaning: "packets per second exceeded the allowance of the instance type", Remedy: largerType,
	},
	{
		Name: "conntrack_allowance_exceeded", Effect: Silences, Namespaced: true, Metric: "node_ethtool_conntrack_allowance_exceeded",
		AWSAction: "dropped", Meaning: "tracked connections exceeded the allowance of the instance type, so new connections failed", Remedy: largerType,
	},
	{ // only a warning, because the dropped packets do not belong to streams
		Name: LinkLocal, Effect: Warns, Namespaced: true, Metric: "node_ethtool_linklocal_allowance_exceeded",
		AWSAction: "dropped", Meaning: "too many packets per second to the name server, the time server or the metadata service", Remedy: "find the program that sends them",
	},
	{Name: Steal, Effect: Delays, Metric: `node_cpu_seconds_total{mode="steal"}`},
	{Name: Overflows, Effect: Refuses, Namespaced: true, Metric: "node_netstat_TcpExt_ListenOverflows"},
	{Name: Drops, Effect: Refuses, Namespaced: true, Metric: "node_netstat_TcpExt_ListenDrops"}, // includes the overflows
	{Name: SYNRetrans, Effect: Informational, Namespaced: true, Metric: "node_netstat_TcpExt_TCPSynRetrans"},
	{Name: Retrans, Effect: Warns, Namespaced: true, Metric: "node_netstat_Tcp_RetransSegs"},
	{Name: OutSegs, Effect: Informational, Namespaced: true, Metric: "node_netstat_Tcp_OutSegs"},
	{
		Name: ConntrackEntries, Effect: Warns, Namespaced: true, Metric: "node_nf_conntrack_entries",
		Limit: "nf_conntrack_max", LimitOf: "node_nf_conntrack_entries_limit",
	},
	{Name: OOMKills, Effect: Warns, Metric: "node_vmstat_oom_kill"},
	{Name: Suspension, Effect: Suspends},
	{Name: ClockStep, Effect: Warns},
}

// CounterOf returns the counter with the given name, and reports whether it exists.
func CounterOf(name string) (Counter, bool) {
	for _, c := range Counters {
		if c.Name == name {
			return c, true
		}
	}
	return Counter{}, false
}

// ByAWS reports whether the counter comes from AWS's driver.
func (c *Counter) ByAWS() bool { return c.AWSAction != "" }

// hasTimes reports whether a record has the times of the counter's increases. Times of
// retransmissions are not recorded, because they are too frequent.
func (c *Counter) hasTimes() bool {
	return c.Effect != Informational && c.Name != Retrans && c.Limit == ""
}
