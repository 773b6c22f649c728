package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

const (
	conntrack = "conntrack_allowance_exceeded"
	dropsAt   = 1000 // seconds after the start of runner 1
)

// quiet is a machine of AWS on which nothing happened, and moved what a counter of it did in 5 s from dropsAt on.
func quiet(boot string) *machine.Record {
	w := machine.Follow("", time.Second)
	all := machine.Reading{machine.Tracked: 1, "nf_conntrack_max": 100, machine.Sent: 0}
	for _, c := range machine.Counters {
		if c.Limit == "" {
			all[c.Name] = 0
		}
	}
	w.Add(time.Unix(1_700_000_000, 0), all)
	all[machine.Sent] = 10_000
	w.Add(time.Unix(1_700_003_600, 0), all)
	r := w.Record()
	r.Boot, r.BootedUnix, r.Cores, r.Namespace, r.Cards = boot, 1_600_000_000, 2, "net:["+boot+"]", true
	return r
}

func moved(r *machine.Record, name string, by float64) *machine.Record {
	s := r.Series(name)
	s.Grown, s.End = s.Grown+by, s.End+by
	from := time.Unix(1_700_000_000+dropsAt, 0)
	s.Moved = append(s.Moved, machine.Stretch{FromUS: from.UnixMicro(), ToUS: from.Add(5 * time.Second).UnixMicro(), By: by})
	return r
}

// onAWS is a clean run of two runners, each on a machine of its own.
func onAWS() (*shard.Merged, ServerLedger) {
	m, server := clean()
	m.Runners[0].Machine, m.Runners[1].Machine = quiet("b-1"), quiet("b-2")
	return m, server
}

// suffers changes the first connection of runner 1, the given seconds after its start.
func late(r *ledger.Record, at int) {
	r.Late++
	r.Findings = append(r.Findings, ledger.Finding{Kind: ledger.KindLate, From: 7, At: time.Duration(at) * time.Second, Lateness: 1500 * time.Millisecond})
}

func silent(r *ledger.Record, at int, reason string) {
	r.State, r.Reason, r.ClosedAt, r.LastAt = ledger.Dropped, reason, time.Duration(at)*time.Second, time.Duration(at-38)*time.Second
	r.Received, r.Tail, r.Last = noopsEach-2, 2, noopsEach-2
	r.Findings = append(r.Findings,
		ledger.Finding{Kind: ledger.KindTail, From: noopsEach - 2, Count: 2, At: r.ClosedAt},
		ledger.Finding{Kind: ledger.KindDropped, At: r.ClosedAt, Note: reason})
}

func refused(r *ledger.Record, at int, reason string) {
	*r = ledger.Record{
		ID: r.ID, State: ledger.Refused, Reason: reason, Attempts: 1, Connect: 10 * time.Second, ClosedAt: time.Duration(at) * time.Second,
		Findings: []ledger.Finding{{Kind: ledger.KindRefused, At: time.Duration(at) * time.Second, Note: reason}},
		Refusals: []ledger.Refusal{{Reason: reason, Count: 1, First: time.Duration(at) * time.Second, Last: time.Duration(at) * time.Second}},
	}
}

// Packets of a runner that AWS dropped make a doubt of what its streams suffered then, and of nothing else.
func TestPacketsDroppedByAWS(t *testing.T) {
	t.Parallel()
	const sentence = "AWS dropped 14 packets of runner 1 (h1) between 22:30:00 and 22:30:05 UTC: conntrack_allowance_exceeded"
	for name, c := range map[string]struct {
		edit func(m *shard.Merged, server ServerLedger)
		want Outcome
		says string
	}{
		"and nobody suffered":     {func(*shard.Merged, ServerLedger) {}, Pass, ""},
		"and a message came late": {func(m *shard.Merged, _ ServerLedger) { late(&m.Connections.Edit(0).Record, dropsAt+4) }, Invalid, "1 message arrived late"},
		"and a message that was due then came late afterwards": {func(m *shard.Merged, _ ServerLedger) {
			late(&m.Connections.Edit(0).Record, dropsAt+8)
			m.Connections.Edit(0).Findings[0].Lateness = 7 * time.Second
		}, Invalid, "1 message arrived late"},
		"and a message had come late before":     {func(m *shard.Merged, _ ServerLedger) { late(&m.Connections.Edit(0).Record, dropsAt-3) }, Pass, ""},
		"and a message came late elsewhere":      {func(m *shard.Merged, _ ServerLedger) { late(&m.Connections.Edit(1).Record, dropsAt+4) }, Pass, ""},
		"and a message came late at other times": {func(m *shard.Merged, _ ServerLedger) { late(&m.Connections.Edit(0).Record, dropsAt+60) }, Pass, ""},
		"lateness is limited": {func(m *shard.Merged, _ ServerLedger) {
			m.Plan.MaxLate = 0
			late(&m.Connections.Edit(0).Record, dropsAt+4)
		}, Invalid, "1 message arrived late"},
		"lateness is limited, and not all was then": {func(m *shard.Merged, _ ServerLedger) {
			m.Plan.MaxLate = 0
			late(&m.Connections.Edit(0).Record, dropsAt+4)
			late(&m.Connections.Edit(1).Record, dropsAt+4)
		}, Fail, ""},
		"and a stream went silent": {func(m *shard.Merged, server ServerLedger) {
			m.Checks[0] = shard.Check{Name: m.Checks[0].Name, Passes: 2, Fails: 1}
			silent(&m.Connections.Edit(0).Record, dropsAt+20, "idle")
			server["d-0"] = ServerEntry{ID: "d-0", First: 1, Last: noopsEach - 2, Sent: noopsEach - 2}
		}, Invalid, "1 stream went silent"},
		"and a stream went silent long after": {func(m *shard.Merged, server ServerLedger) {
			silent(&m.Connections.Edit(0).Record, dropsAt+35, "idle") // silent for 38 s, of which the drops were over after 8 s
		}, Fail, ""},
		"and a stream was reset": {func(m *shard.Merged, _ ServerLedger) { silent(&m.Connections.Edit(0).Record, dropsAt+4, "reset") }, Fail, ""},
		"and a connect timed out": {func(m *shard.Merged, server ServerLedger) {
			m.Checks[0] = shard.Check{Name: m.Checks[0].Name, Passes: 2}
			refused(&m.Connections.Edit(0).Record, dropsAt+10, "connect_timeout")
			delete(server, "d-0")
		}, Invalid, "1 connect timed out"},
		"and a connect was answered": {func(m *shard.Merged, server ServerLedger) {
			refused(&m.Connections.Edit(0).Record, dropsAt+4, "status 503")
			delete(server, "d-0")
		}, Fail, ""},
		"and a numbered noop was skipped": {func(m *shard.Merged, _ ServerLedger) {
			late(&m.Connections.Edit(0).Record, dropsAt+4)
			r := &m.Connections.Edit(0).Record
			r.Received, r.Lost = noopsEach-1, 1
			r.Findings = append(r.Findings, ledger.Finding{Kind: ledger.KindLost, From: 67, To: 67, Count: 1, At: (dropsAt + 4) * time.Second})
		}, Fail, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := onAWS()
			moved(m.Runners[0].Machine, conntrack, 14)
			c.edit(m, server)
			v := judgeSoak(m, server, Evidence{})
			require.Equal(t, c.want, v.Verdict, v.Reasons)
			told := v.Warnings
			if v.Verdict == Invalid {
				told = v.Reasons
			}
			text := strings.Join(told, "\n")
			require.Contains(t, text, sentence)
			require.Contains(t, text, "use an instance type that is allowed more")
			require.Contains(t, text, c.says)
		})
	}
}

// What runner and service say to each other on one machine passes no network of AWS.
func TestPacketsDroppedByAWSWithALocalTarget(t *testing.T) {
	t.Parallel()
	m, server := onAWS()
	moved(m.Runners[0].Machine, conntrack, 14)
	late(&m.Connections.Edit(0).Record, dropsAt+4)
	v := judgeSoak(m, server, Evidence{OneHost: true})
	require.Equal(t, Pass, v.Verdict, v.Reasons)
	require.Contains(t, strings.Join(v.Warnings, "\n"), "AWS dropped 14 packets of runner 1 (h1)")
}

func TestQuietMachineChangesNothing(t *testing.T) {
	t.Parallel()
	m, server := onAWS()
	v := judgeSoak(m, server, Evidence{OneHost: true})
	require.Equal(t, Pass, v.Verdict)
	require.Empty(t, v.Warnings)
	require.Empty(t, failedChecks(v))
	require.Len(t, v.Machines, 2)
	m, server = clean() // whose runners counted nothing
	v = judgeSoak(m, server, Evidence{})
	require.Equal(t, Pass, v.Verdict)
	require.Nil(t, v.Machines)
}

// Runners on one machine see the same counters: they are counted once. In network namespaces of their own they are not the
// same, but what is of the whole machine is.
func TestRunnersOnOneMachineAreCountedOnce(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]float64{"net:[b]": 14, "net:[other]": 28} {
		m, server := clean()
		for i := range m.Runners {
			r := quiet("b")
			moved(moved(moved(r, conntrack, 14), machine.Killed, 1), machine.Steal, 36)
			m.Runners[i].Machine, m.Runners[i].Host = r, "h"
		}
		m.Runners[1].Machine.Namespace = namespace
		v := judgeSoak(m, server, Evidence{})
		require.Len(t, v.Machines, 1)
		one := v.Machines[0]
		require.Equal(t, []int{1, 2}, one.Runners)
		require.Equal(t, "runners 1 and 2 (h)", one.String())
		require.InDelta(t, want, one.Counter(conntrack).Increase, 0)
		require.InDelta(t, 1, one.Counter(machine.Killed).Increase, 0)
		require.InDelta(t, 36./7200, *one.StealShare, 1e-9)
	}
}

// Steal is a doubt of lateness, as a stall is, and a little of it nothing.
func TestStealExplainsLateness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seconds  float64
		late     int // seconds after the start at which a message was
		maxLate  int
		want     Outcome
		warnings string
	}{
		"a little":                         {36, dropsAt + 4, -1, Pass, "used its CPU (steal)"},
		"a little, and nothing late":       {36, 0, -1, Pass, ""},
		"late then, which is limited":      {36, dropsAt + 4, 0, Invalid, "used its CPU (steal)"},
		"late at another time":             {36, dropsAt + 60, 0, Fail, ""},
		"much of it, and nothing was late": {720, 0, 0, Pass, "used 720.0 s of the CPU time of runner 1 (h1), 10 % of it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := onAWS()
			moved(m.Runners[0].Machine, machine.Steal, c.seconds)
			m.Plan.MaxLate = c.maxLate
			if c.late > 0 {
				late(&m.Connections.Edit(0).Record, c.late)
			}
			v := judgeSoak(m, server, Evidence{})
			require.Equal(t, c.want, v.Verdict, v.Reasons)
			if c.warnings == "" {
				require.Empty(t, v.Warnings)
			}
			require.Contains(t, strings.Join(v.Warnings, "\n"), c.warnings)
		})
	}
}

// The control group is read by the same process: where it was in time, the hypervisor delayed nothing. That a packet of
// one stream was dropped it cannot know.
func TestControlGroupShowsStealButNotPackets(t *testing.T) {
	t.Parallel()
	for counter, want := range map[string]Outcome{machine.Steal: Fail, conntrack: Invalid} {
		m, server := onAWS()
		controlled(m, shard.ControlWindow{At: time.Unix(1_700_000_000+dropsAt, 0), Late: 1})
		moved(m.Runners[0].Machine, counter, 36)
		late(&m.Connections.Edit(0).Record, dropsAt+4)
		v := judgeSoak(m, server, Evidence{})
		require.Equal(t, want, v.Verdict, "%s: %v", counter, v.Reasons)
	}
	m, server := onAWS()
	controlled(m, shard.ControlWindow{At: time.Unix(1_700_000_000+dropsAt, 0), Late: 1, Longest: 3 * time.Second})
	moved(m.Runners[0].Machine, machine.Steal, 36)
	late(&m.Connections.Edit(0).Record, dropsAt+4)
	require.Equal(t, Invalid, judgeSoak(m, server, Evidence{}).Verdict)
}

// Of everything else a machine warns, with what to do, and the verdict stays.
func TestMachineWarnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(r *machine.Record)
		want string
	}{
		"overflows":                      {func(r *machine.Record) { moved(moved(r, machine.Overflows, 3), machine.Drops, 5) }, "3 connects found an accept queue full on runner 1 (h1), first between 22:30:00 and 22:30:05 UTC (ListenOverflows; ListenDrops 5)"},
		"drops":                          {func(r *machine.Record) { moved(r, machine.Drops, 5) }, "dropped 5 connects, first between 22:30:00 and 22:30:05 UTC (ListenDrops), although no accept queue was full"},
		"retransmits":                    {func(r *machine.Record) { r.Series(machine.Retrans).Grown = 201 }, "201 of its TCP segments, 2.0 % (RetransSegs)"},
		"few retransmits":                {func(r *machine.Record) { r.Series(machine.Retrans).Grown = 200 }, ""},
		"retransmits of little":          {func(r *machine.Record) { r.Series(machine.Retrans).Grown, r.Series(machine.Sent).Grown = 100, 1000 }, "100 of its TCP segments, 10.0 % (RetransSegs)"},
		"retransmits of next to nothing": {func(r *machine.Record) { r.Series(machine.Retrans).Grown, r.Series(machine.Sent).Grown = 50, 100 }, ""},
		"a full table": {func(r *machine.Record) {
			r.Series(machine.Tracked).Most, r.Series(machine.Tracked).MostUS = .9, 1_700_001_000_000_000
		}, "was 90 % full at 22:30:00 UTC (nf_conntrack_count)"},
		"a kill":     {func(r *machine.Record) { moved(r, machine.Killed, 1) }, "killed 1 process (out of memory)"},
		"link-local": {func(r *machine.Record) { moved(r, machine.LinkLocal, 9) }, "AWS dropped 9 packets of runner 1 (h1)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := onAWS()
			m.Plan.BackendURL = "http://127.0.0.1:80"
			c.edit(m.Runners[0].Machine)
			late(&m.Connections.Edit(0).Record, dropsAt+4)
			v := judgeSoak(m, server, Evidence{})
			require.Equal(t, Pass, v.Verdict, v.Reasons)
			if c.want == "" {
				require.Empty(t, v.Warnings)
			}
			require.Contains(t, strings.Join(v.Warnings, "\n"), c.want)
		})
	}
	m, server := onAWS()
	moved(m.Runners[0].Machine, machine.Overflows, 3)
	require.Empty(t, judgeSoak(m, server, Evidence{}).Warnings, "the target is elsewhere: who listens there is not known")
}

// The machine of the service is part of what is soaked: what AWS drops there explains a failure and excuses none.
func TestPacketsDroppedByAWSOnTheStack(t *testing.T) {
	t.Parallel()
	m, server := onAWS()
	late(&m.Connections.Edit(0).Record, dropsAt+4)
	m.Plan.MaxLate = 0
	stack := moved(quiet("b-3"), conntrack, 14)
	stack.Name = "stack"
	v := judgeSoak(m, server, Evidence{Machines: []*machine.Record{stack}})
	require.Equal(t, Fail, v.Verdict)
	require.Contains(t, strings.Join(v.Warnings, "\n"), "AWS dropped 14 packets of stack between 22:30:00 and 22:30:05 UTC")
	require.True(t, v.Machines[2].Target)
}

// A pod sees nothing of its host's network: Prometheus, which watches the host, does. The host is known by its boot id.
func TestHostOfAPodIsFoundInPrometheus(t *testing.T) {
	t.Parallel()
	pod := func(boot string) *machine.Record {
		r := quiet(boot)
		r.Cards = false
		r.Counters = append([]machine.Series(nil), *r.Series(machine.Steal), *r.Series(machine.Overflows), *r.Series(machine.Sent))
		return r
	}
	for boot, want := range map[string]string{"b-1": "runner 1 (h1)", "": "runner-1"} {
		m, server := clean()
		m.Runners[0].Machine, m.Runners[1].Machine = pod("b-1"), pod("b-2")
		late(&m.Connections.Edit(0).Record, dropsAt+4)
		host := moved(moved(moved(quiet(boot), conntrack, 14), machine.Steal, 36), machine.Overflows, 2)
		host.Name = "runner-1"
		v := judgeSoak(m, server, Evidence{Machines: []*machine.Record{host}})
		require.Equal(t, Invalid, v.Verdict, v.Reasons)
		require.Contains(t, strings.Join(v.Reasons, "\n"), "AWS dropped 14 packets of "+want)
		if boot == "" { // it may be that of any runner
			require.Len(t, v.Machines, 3)
			continue
		}
		require.Len(t, v.Machines, 2)
		one := v.Machines[0]
		require.InDelta(t, 2, one.Counter(machine.Overflows).Increase, 0, "of the pod's namespace and the host's")
		require.Zero(t, one.Counter(machine.Steal).Increase, "of the machine, which the runner saw itself")
	}
}

// Packets that AWS dropped of an unrelated machine of the Prometheus explain no fault: a laptop sees its own network
// cards, and the pods of another host have its boot id.
func TestMachineOfAnotherDeploymentExplainsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cards bool
		boot  string // as Prometheus has it
	}{"a laptop": {true, ""}, "a pod elsewhere": {false, "b-9"}} {
		m, server := clean()
		m.Plan.MaxLate = 0
		for i := range m.Runners {
			r := quiet("b-1")
			r.Cards = c.cards
			r.Counters = slices.DeleteFunc(r.Counters, func(s machine.Series) bool { return byAWS(s.Name) })
			m.Runners[i].Machine = r
		}
		late(&m.Connections.Edit(0).Record, dropsAt+4)
		other := moved(quiet(c.boot), conntrack, 14)
		other.Name = "runner-1"
		require.Equal(t, Fail, judgeSoak(m, server, Evidence{Machines: []*machine.Record{other}}).Verdict, name)
	}
}

// A Prometheus that watches the machine that soak runs on counts what the runners count: it is the same machine, by its name
// and the time of its start, and stays one. What it knows besides is added.
func TestMachineInPrometheusIsCountedOnce(t *testing.T) {
	t.Parallel()
	m, server := clean()
	for i := range m.Runners {
		m.Runners[i].Machine, m.Runners[i].Host = moved(quiet("b"), machine.Overflows, 3), "h"
		m.Runners[i].Machine.Counters = slices.DeleteFunc(m.Runners[i].Machine.Counters, func(s machine.Series) bool { return byAWS(s.Name) })
	}
	stack := moved(moved(quiet(""), machine.Overflows, 3), conntrack, 14)
	stack.Name, stack.Node, stack.BootedUnix = "stack", "h", stack.BootedUnix+1
	v := judgeSoak(m, server, Evidence{Machines: []*machine.Record{stack}})
	require.Len(t, v.Machines, 1)
	require.True(t, v.Machines[0].Target)
	require.InDelta(t, 3, v.Machines[0].Counter(machine.Overflows).Increase, 0)
	require.InDelta(t, 14, v.Machines[0].Counter(conntrack).Increase, 0)
	stack.BootedUnix += 100
	require.Len(t, judgeSoak(m, server, Evidence{Machines: []*machine.Record{stack}}).Machines, 2, "another machine of that name")
}

// A notice of AWS counts if it takes effect during the run, and one that terminates a spot instance always.
func TestAWSNotices(t *testing.T) {
	t.Parallel()
	m, server := onAWS()
	stack := quiet("b-3")
	stack.Name = "stack"
	stack.Notices = []machine.Notice{
		{Name: "system-reboot", AtUS: 1_700_003_000_000_000},
		{Name: "instance-stop", AtUS: 1_800_000_000_000_000},
		{Name: machine.Spot + "terminate", AtUS: 1_700_003_700_000_000},
	}
	v := judgeSoak(m, server, Evidence{Machines: []*machine.Record{stack}})
	require.Equal(t, Pass, v.Verdict)
	text := strings.Join(v.Warnings, "\n")
	require.Contains(t, text, "AWS announced system-reboot of stack for 2023-11-14 23:03:20 UTC")
	require.Contains(t, text, "AWS announced spot terminate of stack")
	require.NotContains(t, text, "instance-stop")
}

func TestMachineWithoutCounters(t *testing.T) {
	t.Parallel()
	m, server := clean()
	for i := range m.Runners {
		m.Runners[i].Machine = &machine.Record{Unknown: "it shows no counters"}
	}
	v := judgeSoak(m, server, Evidence{})
	require.Equal(t, Pass, v.Verdict)
	require.Empty(t, v.Warnings)
	require.Equal(t, "it shows no counters", v.Machines[1].Unknown)
}
