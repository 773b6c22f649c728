package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/machine"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// mostMachines is how many rows a table of machines has that people read whole; who dropped or lost something comes first.
const mostMachines = 20

// Machines is a table of what the machines of a run may have done to its streams; ok is false where no runner looked.
func Machines(v *verdict.Verdict, most int) (t verdict.Table, ok bool) {
	if len(v.Machines) == 0 {
		return t, false
	}
	t = verdict.Table{
		Title:   "The machines",
		Note:    "AWS dropped: packets; steal: CPU time that the hypervisor took; overflows: connects that found an accept queue full; conntrack: how full its table was; –: not shown there",
		Columns: []string{"machine", "AWS dropped", "steal", "overflows", "drops", "sent again", "conntrack", "OOM kills"},
	}
	all := v.Machines
	if len(all) > most {
		t.Note += fmt.Sprintf("; %d more are in verdict.json", len(all)-most)
		all = all[:most]
	}
	announced := slices.ContainsFunc(all, func(m verdict.Machine) bool { return len(m.Notices) > 0 })
	if announced {
		t.Columns = append(t.Columns, "AWS announced")
	}
	for i := range all {
		m := &all[i]
		row := []string{machineName(m), droppedByAWS(m), "–", counted(m, machine.Overflows), counted(m, machine.Drops), "–", "–", counted(m, machine.Killed)}
		if m.Stolen != nil {
			row[2] = share(*m.Stolen)
		}
		if c := m.Counter(machine.Sent); c != nil && c.Grown > 0 {
			row[5] = share(m.Retransmitted())
		}
		if c := m.Counter(machine.Tracked); c != nil {
			row[6] = share(c.Most)
		}
		if announced {
			row = append(row, notices(m))
		}
		if m.Unknown != "" {
			t.Note += "; " + m.String() + ": " + m.Unknown
		}
		t.Add(row...)
	}
	return t, true
}

func machineName(m *verdict.Machine) string {
	name := m.String()
	if m.Target && len(m.Runners) > 0 {
		name += ", target"
	}
	return name
}

// share is a part of a whole; 0.00 % of what is not nothing would be wrong.
func share(v float64) string {
	if v > 0 && v < .0001 {
		return "0.01 %"
	}
	return fmt.Sprintf("%.2f %%", 100*v)
}

func counted(m *verdict.Machine, name string) string {
	c := m.Counter(name)
	if c == nil {
		return "–"
	}
	return format.Thousands(int(c.Grown))
}

// droppedByAWS is how many packets AWS dropped, by counter.
func droppedByAWS(m *verdict.Machine) string {
	cell := "–"
	var moved []string
	for _, c := range m.Counters {
		known, _ := machine.Of(c.Name)
		if !known.ByAWS() {
			continue
		}
		cell = "0"
		if c.Grown > 0 {
			moved = append(moved, format.Thousands(int(c.Grown))+" "+strings.TrimSuffix(c.Name, "_allowance_exceeded"))
		}
	}
	if len(moved) > 0 {
		return strings.Join(moved, ", ")
	}
	return cell
}

func notices(m *verdict.Machine) string {
	var out []string
	for _, n := range m.Notices {
		out = append(out, n.What+" "+format.Moment(float64(n.AtUS)/1e6))
	}
	return strings.Join(out, ", ")
}
