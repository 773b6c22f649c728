package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A MachineReport has the counters of one machine during the run.
type MachineReport struct {
	Name    string `json:"name"`
	Runners []int  `json:"runners,omitempty"` // the indexes of the runners on it
	Target  bool   `json:"target,omitempty"`  // the service runs on it
	Unknown string `json:"unknown,omitempty"` // why no counter is known
	// StealShare is the share of the machine's CPU time that the hypervisor used; nil: not known.
	StealShare *float64         `json:"stolen_share,omitempty"`
	Counters   []MachineCounter `json:"counters,omitempty"`
	Notices    []machine.Notice `json:"notices,omitempty"`

	key         string            // identifies the machine in records of runners
	runners     []int             // the runners whose streams the machine carried, as indexes into Merged.Runners
	fromRunners []runnerRecord    // records from its runners
	records     []*machine.Record // records from Prometheus
}

// A MachineCounter is one counter of a machine, over the whole run.
type MachineCounter struct {
	Name         string  `json:"name"`
	Increase     float64 `json:"increase"`
	HighestShare float64 `json:"highest_share,omitempty"` // the highest share of its limit; 0: it has no limit

	increases []machine.Stretch
	highestUS int64
	kind      machine.Counter
}

// A runnerRecord is the record of a machine by one runner in one round.
type runnerRecord struct {
	*machine.Record
	round int
}

// Counter returns a counter of the machine; nil if it was not read.
func (m *MachineReport) Counter(name string) *MachineCounter {
	for i := range m.Counters {
		if m.Counters[i].Name == name {
			return &m.Counters[i]
		}
	}
	return nil
}

// counterOrZero returns a counter of the machine; zero if it was not read.
func (m *MachineReport) counterOrZero(name string) (out MachineCounter) {
	if c := m.Counter(name); c != nil {
		out = *c
	}
	return out
}

// firstIncrease returns the time of the first increase; "" if the counter did not increase.
func (c *MachineCounter) firstIncrease() string {
	if len(c.increases) == 0 {
		return ""
	}
	return formatStretch(c.increases[0])
}

// MachinesOf returns the machines of a run, each once. Runners with the same boot id are on the same machine. So are
// runners without a boot id that have the same host name. A record of Prometheus that describes none of these machines
// adds a machine.
func MachinesOf(e *Evidence) []MachineReport {
	var all []*MachineReport
	for round, m := range e.Rounds {
		for i, r := range m.Runners {
			if r.Machine == nil {
				continue
			}
			key := cmp.Or(r.Machine.Boot, "host "+r.Host)
			at := slices.IndexFunc(all, func(m *MachineReport) bool { return m.key == key })
			if at < 0 {
				at = len(all)
				all = append(all, &MachineReport{key: key, Name: r.Host, Unknown: r.Machine.Unknown})
			}
			host := all[at]
			host.fromRunners = append(host.fromRunners, runnerRecord{r.Machine, round})
			host.Target = host.Target || e.SharesHost(m.Plan.BackendOf(r.Index))
			if round == 0 {
				host.Runners, host.runners = append(host.Runners, r.Index), append(host.runners, i)
			}
		}
	}
	for _, r := range e.Machines {
		at := slices.IndexFunc(all, func(m *MachineReport) bool { return m.isSame(r) })
		if at < 0 {
			at = len(all)
			all = append(all, &MachineReport{Name: r.Name})
		}
		all[at].Target = all[at].Target || !r.IsRunner()
		all[at].records = append(all[at].records, r)
	}
	var out []MachineReport
	for _, m := range all {
		m.sum()
		m.assignRunners(e.Rounds[0], all)
		out = append(out, *m)
	}
	return out
}

// SharesHost reports whether all the given services run on the machine of the runners.
func (e *Evidence) SharesHost(services ...string) bool {
	return e.OneHost || plan.OnLoopback(services...)
}

// isSame reports whether a record of Prometheus describes this machine: both have the same boot id. If a boot id is
// unknown, both must have the same name, and boot times at most 2 s apart. The kernel reports the boot time with an
// error of 1 s.
func (m *MachineReport) isSame(r *machine.Record) bool {
	return slices.ContainsFunc(m.fromRunners, func(s runnerRecord) bool {
		if r.Boot != "" && s.Boot != "" {
			return r.Boot == s.Boot
		}
		difference := r.BootedUnix - s.BootedUnix
		return r.Node != "" && r.Node == m.Name && s.BootedUnix > 0 && -2 <= difference && difference <= 2
	})
}

// assignRunners sets the runners of a machine that only Prometheus reports and that does not run the service: all
// runners that may be on this machine. A runner whose record has counters of AWS's network, or a different boot id, is
// on another machine. The record of a pod has no counters of AWS's network.
func (m *MachineReport) assignRunners(firstRound *shard.Merged, all []*MachineReport) {
	if len(m.fromRunners) > 0 || m.Target {
		return
	}
	for i := range firstRound.Runners {
		isElsewhere := slices.ContainsFunc(all, func(other *MachineReport) bool {
			return slices.Contains(other.Runners, firstRound.Runners[i].Index) && (m.differs(other) || slices.ContainsFunc(other.Counters, func(c MachineCounter) bool { return c.kind.ByAWS() }))
		})
		if !isElsewhere {
			m.runners = append(m.runners, i)
		}
	}
}

// differs reports whether m, which only Prometheus reports, is certainly a different machine than other, which has
// records of runners.
func (m *MachineReport) differs(other *MachineReport) bool {
	return slices.ContainsFunc(other.fromRunners, func(s runnerRecord) bool {
		return s.Cards || s.Boot != "" && slices.ContainsFunc(m.records, func(r *machine.Record) bool { return r.Boot != "" })
	})
}

func (m *MachineReport) sum() {
	for _, c := range machine.Counters {
		sum, known := MachineCounter{Name: c.Name, kind: c}, false
		var seconds float64
		for _, r := range m.recordsOf(c) {
			s := r.Series(c.Name)
			if s == nil {
				continue
			}
			known = true
			sum.Increase += s.Increase
			sum.increases = append(sum.increases, s.Stretches...)
			if s.MaxShare > sum.HighestShare {
				sum.HighestShare, sum.highestUS = s.MaxShare, s.MaxShareUS
			}
			seconds += float64(r.Cores) * float64(r.ToUS-r.FromUS) / 1e6
		}
		if !known {
			continue
		}
		slices.SortFunc(sum.increases, func(a, b machine.Stretch) int { return cmp.Compare(a.FromUS, b.FromUS) })
		m.Counters = append(m.Counters, sum)
		if c.Name == machine.Steal && seconds > 0 {
			share := sum.Increase / seconds
			m.StealShare = &share
		}
	}
	for _, r := range m.records {
		m.Notices = append(m.Notices, r.Notices...)
	}
	if len(m.Counters) > 0 {
		m.Unknown = ""
	}
}

// recordsOf returns the records from which a counter is summed: the longest record of each round or, for a counter of a
// network namespace, of each namespace and round. Records from Prometheus are added if no runner reads the counter of
// the machine itself.
func (m *MachineReport) recordsOf(c machine.Counter) (out []*machine.Record) {
	longest := map[string]*machine.Record{}
	var order []string
	isOfMachine := false // a runner reads the counter of the machine itself, not of a container's network
	for _, s := range m.fromRunners {
		if s.Series(c.Name) == nil {
			continue
		}
		key := fmt.Sprint(s.round)
		if c.Namespaced {
			key += s.Namespace
		}
		isOfMachine = isOfMachine || !c.Namespaced || s.Cards
		previous := longest[key]
		if previous == nil {
			order = append(order, key)
		}
		if previous == nil || s.ToUS-s.FromUS > previous.ToUS-previous.FromUS {
			longest[key] = s.Record
		}
	}
	for _, key := range order {
		out = append(out, longest[key])
	}
	if !isOfMachine {
		out = append(out, m.records...)
	}
	return out
}

// String returns the runners on the machine, and the machine's name: "runner 2 (host-a)".
func (m *MachineReport) String() string {
	switch {
	case len(m.Runners) == 0:
		return m.Name
	case m.Name == "":
		return m.Title()
	}
	return fmt.Sprintf("%s (%s)", m.Title(), m.Name)
}

// Title returns the runners on the machine: "runner 2", "runners 1 to 4". The machine must have a runner.
func (m *MachineReport) Title() string {
	n := len(m.Runners)
	first, last := slices.Min(m.Runners), slices.Max(m.Runners)
	switch {
	case n == 1:
		return fmt.Sprintf("runner %d", first)
	case n == 2:
		return fmt.Sprintf("runners %d and %d", first, last)
	case last-first == n-1:
		return fmt.Sprintf("runners %d to %d", first, last)
	}
	sorted := slices.Sorted(slices.Values(m.Runners))
	return "runners " + strings.Trim(strings.ReplaceAll(fmt.Sprint(sorted), " ", ", "), "[]")
}
