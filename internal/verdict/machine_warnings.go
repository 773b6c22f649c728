package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/machine"
)

const (
	// maxStolenShare is the maximum share of its CPU time that a machine may lose to the hypervisor.
	maxStolenShare = maxWaitShare
	// maxRetransmittedShare is the maximum share of retransmitted segments, and minRetransmitted their minimum number
	// for a warning. A quarter of the Internet traces that K. Pentikousis and others compared exceed this share ("A
	// comparative study of aggregate TCP retransmission rates"). The share in a private network is far smaller.
	maxRetransmittedShare = .02
	minRetransmitted      = 100
	// maxTrackedShare is the maximum use of the table of tracked connections. A full table makes connects fail.
	maxTrackedShare = .9
)

// addMachines adds the counters of the machines and their warnings to the verdict. It attributes the faults of the
// checks to the signals that explain them. It returns the checks, and then the checks of packets that AWS dropped.
func (v *Verdict) addMachines(e *Evidence, s *Streams, all []Check) []Check {
	v.Machines = MachinesOf(e)
	signals := signalsOf(v.Machines, s)
	for i := range all {
		all[i] = signals.attribute(all[i])
	}
	for i := range v.Machines {
		m, machineFaults := &v.Machines[i], &signals.byMachine[i]
		v.Warnings = slices.Concat(v.Warnings, m.stealWarnings(machineFaults), m.counterWarnings(), m.noticeWarnings(v.EndedUnix))
		if c, ok := m.droppedByAWS(machineFaults); ok {
			all = append(all, c)
		}
	}
	return all
}

// droppedByAWS returns the unmet check that AWS dropped no packets of the machine; ok is false if it dropped none. If
// streams had faults at that time, the check turns a pass into invalid.
func (m *MachineReport) droppedByAWS(s *concurrentFaults) (c Check, ok bool) {
	var packets float64
	c = Check{
		ID: CheckPackets, Name: "AWS dropped no packets of " + m.String(), Limit: "0", Severity: SeverityWarning,
		Why: "measured times include delays of the runner's network",
	}
	if s.byPackets() {
		c = c.AsDoubt()
	}
	if m.Target {
		c.Why = "the machine is at a limit of AWS"
	}
	for _, counter := range m.Counters {
		kind := counter.kind
		if !kind.ByAWS() || counter.Increase == 0 {
			continue
		}
		packets += counter.Increase
		for _, increase := range counter.increases {
			text := fmt.Sprintf("AWS %s %s of %s %s: %s (%s): %s", kind.AWSAction, format.Count(int(increase.Increase), "packet"), m, formatStretch(increase), counter.Name, kind.Meaning, kind.Remedy)
			c.Reasons = append(c.Reasons, text)
		}
	}
	c.Actual = format.Thousands(int(packets))
	if s.byPackets() {
		c.Reasons = append([]string{fmt.Sprintf("when AWS dropped packets of %s, %s: the network may be the cause, not the service", m, s)}, c.Reasons...)
	}
	return c, packets > 0
}

func (m *MachineReport) stealWarnings(s *concurrentFaults) (out []string) {
	c := m.Counter(machine.Steal)
	if c == nil || m.StealShare == nil {
		return nil
	}
	if *m.StealShare > maxStolenShare {
		out = append(out, fmt.Sprintf("the hypervisor used %.1f s of the CPU time of %s, %.0f %% of it (steal): use an instance type with dedicated cores, not a burstable one",
			c.Increase, m, 100**m.StealShare))
	}
	if s.lateBySteal > 0 {
		out = append(out, fmt.Sprintf("%s late on %s while the hypervisor used the CPU of this machine (steal), first %s: the hypervisor may be the cause",
			format.Plural(s.lateBySteal, "message arrived", "messages arrived"), m, c.firstIncrease()))
	}
	return out
}

// counterWarnings returns the warnings of the counters that show a shortage on the machine.
func (m *MachineReport) counterWarnings() (out []string) {
	overflows, drops, retransmits, share := m.counterOrZero(machine.Overflows), m.counterOrZero(machine.Drops), m.counterOrZero(machine.Retrans), m.RetransmittedShare()
	table, kills, step := m.counterOrZero(machine.ConntrackEntries), m.counterOrZero(machine.OOMKills), m.counterOrZero(machine.ClockStep)
	for _, w := range []struct {
		applies bool
		text    string
	}{
		{m.Target && overflows.Increase > 0, fmt.Sprintf("%s found an accept queue full on %s, first %s (ListenOverflows; ListenDrops %s): the listener accepts too slowly, or its backlog or net.core.somaxconn is too small",
			format.Count(int(overflows.Increase), "connect"), m, overflows.firstIncrease(), format.Thousands(int(drops.Increase)))},
		{m.Target && overflows.Increase == 0 && drops.Increase > 0, fmt.Sprintf("the kernel of %s dropped %s, first %s (ListenDrops), although no accept queue was full: check memory, and the descriptors of the listener",
			m, format.Count(int(drops.Increase), "connect"), drops.firstIncrease())},
		{share > maxRetransmittedShare && retransmits.Increase >= minRetransmitted, fmt.Sprintf("%s retransmitted %s of its TCP segments, %.1f %% (RetransSegs): the network loses packets; most paths of the Internet have under %.0f %%",
			m, format.Thousands(int(retransmits.Increase)), 100*share, 100*maxRetransmittedShare)},
		{table.HighestShare >= maxTrackedShare, fmt.Sprintf("the table of tracked connections of %s was %.0f %% full at %s UTC (nf_conntrack_count): when it is full, the kernel drops new connections; raise net.netfilter.nf_conntrack_max",
			m, 100*table.HighestShare, format.Clock(float64(table.highestUS)/1e6))},
		{kills.Increase > 0, fmt.Sprintf("the kernel of %s killed %s (out of memory), first %s (oom_kill); run journalctl -k on this machine for details",
			m, format.Count(int(kills.Increase), "process"), kills.firstIncrease())},
		{step.Increase != 0, fmt.Sprintf("the wall clock of %s jumped by %s, first %s: an NTP step, or a paused virtual machine; counts and latencies of its runners use another clock",
			m, format.Duration(time.Duration(step.Increase*float64(time.Second))), step.firstIncrease())},
	} {
		if w.applies {
			out = append(out, w.text)
		}
	}
	return out
}

// RetransmittedShare returns the share of TCP segments that were retransmitted; 0 if none is known to have been sent.
func (m *MachineReport) RetransmittedShare() float64 {
	if sent := m.counterOrZero(machine.OutSegs).Increase; sent > 0 {
		return m.counterOrZero(machine.Retrans).Increase / sent
	}
	return 0
}

// noticeWarnings warns of notices of AWS that take effect before the end of the run, and of all spot interruptions.
func (m *MachineReport) noticeWarnings(endedUnix float64) (out []string) {
	for _, n := range m.Notices {
		if float64(n.AtUS)/1e6 > endedUnix && !strings.HasPrefix(n.Name, machine.Spot) {
			continue
		}
		out = append(out, fmt.Sprintf("AWS announced %s of %s for %s, which may have affected the run",
			n.Name, m, format.Time(time.UnixMicro(n.AtUS))))
	}
	return out
}
