package report

import (
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const maxMachines = 20

func machines(v *verdict.Verdict) Section {
	out := Section{ID: "machines", Title: "Machines"}
	if len(v.Machines) == 0 {
		return out
	}
	t := Table{
		Note:    "AWS dropped: packets that AWS delayed or dropped; steal: CPU time that the hypervisor gave to other machines; overflows: connection attempts that found the accept queue full; drops: connection attempts that the kernel dropped; conntrack: highest use of the table; –: not known",
		Columns: Columns("machine", "#AWS dropped", "#steal", "#overflows", "#drops", "#retransmitted", "#conntrack", "#OOM kills"),
	}
	list := v.Machines
	if len(list) > maxMachines {
		t.Note += "; " + format.Plural(len(list)-maxMachines, "more is", "more are") + " in verdict.json"
		list = list[:maxMachines]
	}
	hasNotices := slices.ContainsFunc(list, func(m verdict.MachineReport) bool { return len(m.Notices) > 0 })
	if hasNotices {
		t.Columns = append(t.Columns, Columns("AWS announced")...)
	}
	for i := range list {
		m := &list[i]
		row := Cells(machineName(m), droppedByAWS(m), "–", machineCount(m, machine.Overflows), machineCount(m, machine.Drops), "–", "–", machineCount(m, machine.OOMKills))
		if m.StealShare != nil {
			row[2].Text = format.Percent(100 * *m.StealShare)
		}
		if c := m.Counter(machine.OutSegs); c != nil && c.Increase > 0 {
			row[5].Text = format.Percent(100 * m.RetransmittedShare())
		}
		if c := m.Counter(machine.ConntrackEntries); c != nil {
			row[6].Text = format.Percent(100 * c.HighestShare)
		}
		if hasNotices {
			row = append(row, Cell{Text: notices(m)})
		}
		if m.Unknown != "" {
			t.Note += "; " + m.String() + ": " + m.Unknown
		}
		t.Rows = append(t.Rows, row)
	}
	out.Tables = []Table{t}
	return out
}

func machineName(m *verdict.MachineReport) string {
	name := m.String()
	if m.Target && len(m.Runners) > 0 {
		name += ", target"
	}
	return name
}

func machineCount(m *verdict.MachineReport, name string) string {
	c := m.Counter(name)
	if c == nil {
		return "–"
	}
	return format.Thousands(int(c.Increase))
}

func droppedByAWS(m *verdict.MachineReport) string {
	cell := "–"
	var drops []string
	for _, c := range m.Counters {
		counter, _ := machine.CounterOf(c.Name)
		if !counter.ByAWS() {
			continue
		}
		cell = "0"
		if c.Increase > 0 {
			drops = append(drops, format.Thousands(int(c.Increase))+" "+strings.TrimSuffix(c.Name, "_allowance_exceeded"))
		}
	}
	if len(drops) > 0 {
		return strings.Join(drops, ", ")
	}
	return cell
}

func notices(m *verdict.MachineReport) string {
	var out []string
	for _, n := range m.Notices {
		out = append(out, n.Name+" "+format.UnixTime(float64(n.AtUS)/1e6))
	}
	return strings.Join(out, ", ")
}
