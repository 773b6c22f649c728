package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
)

// A pod does not see the network of its host, but Prometheus scrapes the host. The host is found by its boot id.
func TestHostOfAPodIsFoundInPrometheus(t *testing.T) {
	t.Parallel()
	pod := func(boot string) *machine.Record {
		r := newMachine(boot)
		r.Cards = false
		r.Counters = append([]machine.Series(nil), *r.Series(machine.Steal), *r.Series(machine.Overflows), *r.Series(machine.OutSegs))
		return r
	}
	for boot, want := range map[string]string{"b-1": "runner 1 (h1)", "": "runner-1"} {
		m, server := cleanRun()
		m.Runners[0].Machine, m.Runners[1].Machine = pod("b-1"), pod("b-2")
		makeLate(&m.Connections.Edit(0).Record, dropsAt+4)
		host := addIncrease(addIncrease(addIncrease(newMachine(boot), conntrack, 14), machine.Steal, 36), machine.Overflows, 2)
		host.Name = "runner-1"
		v := requireOutcome(t, Invalid, judgeSoak(m, server, Evidence{Machines: []*machine.Record{host}}))
		require.Contains(t, strings.Join(v.Reasons, "\n"), "AWS dropped 14 packets of "+want)
		if boot == "" { // without a boot id it may be the machine of any runner
			require.Len(t, v.Machines, 3)
			continue
		}
		require.Len(t, v.Machines, 2)
		report := v.Machines[0]
		require.InDelta(t, 2, report.Counter(machine.Overflows).Increase, 0, "the counters of both namespaces, of the pod and of the host, must be summed")
		require.Zero(t, report.Counter(machine.Steal).Increase, "the runner read this counter, so the value of Prometheus must not be added")
	}
}

// Packets that AWS dropped on an unrelated machine in the same Prometheus server explain no fault. A laptop has its own
// network cards, and the pods of another host have the boot id of that host.
func TestMachineOfAnotherDeploymentExplainsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cards bool
		boot  string // boot id in Prometheus
	}{"a laptop": {true, ""}, "a pod elsewhere": {false, "b-9"}} {
		m, server := cleanRun()
		m.Plan.MaxLate = 0
		for i := range m.Runners {
			r := newMachine("b-1")
			r.Cards = c.cards
			r.Counters = slices.DeleteFunc(r.Counters, isByAWS)
			m.Runners[i].Machine = r
		}
		makeLate(&m.Connections.Edit(0).Record, dropsAt+4)
		unrelated := addIncrease(newMachine(c.boot), conntrack, 14)
		unrelated.Name = "runner-1"
		require.Equal(t, Fail, judgeSoak(m, server, Evidence{Machines: []*machine.Record{unrelated}}).Verdict, name)
	}
}

// A Prometheus server may also scrape the machine of the runners. The name and the boot time show that its record
// describes the same machine. Only counters that no runner reads are added.
func TestMachineInPrometheusIsCountedOnce(t *testing.T) {
	t.Parallel()
	m, server := cleanRun()
	for i := range m.Runners {
		m.Runners[i].Machine, m.Runners[i].Host = addIncrease(newMachine("b"), machine.Overflows, 3), "h"
		m.Runners[i].Machine.Counters = slices.DeleteFunc(m.Runners[i].Machine.Counters, isByAWS)
	}
	stack := addIncrease(addIncrease(newMachine(""), machine.Overflows, 3), conntrack, 14)
	stack.Name, stack.Node, stack.BootedUnix = "stack", "h", stack.BootedUnix+1
	v := judgeSoak(m, server, Evidence{Machines: []*machine.Record{stack}})
	require.Len(t, v.Machines, 1)
	require.True(t, v.Machines[0].Target)
	require.InDelta(t, 3, v.Machines[0].Counter(machine.Overflows).Increase, 0)
	require.InDelta(t, 14, v.Machines[0].Counter(conntrack).Increase, 0)
	stack.BootedUnix += 100
	require.Len(t, judgeSoak(m, server, Evidence{Machines: []*machine.Record{stack}}).Machines, 2, "machines with the same name and different boot times must stay separate")
}
