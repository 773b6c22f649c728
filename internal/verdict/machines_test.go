package verdict

import (
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

// newMachine returns the record of a machine of AWS whose counters did not change, except for sent segments.
func newMachine(boot string) *machine.Record {
	w := machine.NewRemote("", time.Second)
	all := machine.Reading{machine.ConntrackEntries: 1, "nf_conntrack_max": 100, machine.OutSegs: 0}
	for _, c := range machine.Counters {
		if c.Limit == "" {
			all[c.Name] = 0
		}
	}
	w.Add(time.Unix(1_700_000_000, 0), all)
	all[machine.OutSegs] = 10_000
	w.Add(time.Unix(1_700_003_600, 0), all)
	r := w.Record()
	r.Boot, r.BootedUnix, r.Cores, r.Namespace, r.Cards = boot, 1_600_000_000, 2, "net:["+boot+"]", true
	return r
}

func isByAWS(s machine.Series) bool {
	c, _ := machine.CounterOf(s.Name)
	return c.ByAWS()
}

func addIncrease(r *machine.Record, name string, by float64) *machine.Record {
	s := r.Series(name)
	s.Increase, s.End = s.Increase+by, s.End+by
	from := time.Unix(1_700_000_000+dropsAt, 0)
	s.Stretches = append(s.Stretches, machine.Stretch{FromUS: from.UnixMicro(), ToUS: from.Add(5 * time.Second).UnixMicro(), Increase: by})
	return r
}

func cleanRunOnAWS() (*shard.Merged, ServerLedger) {
	m, server := cleanRun()
	m.Runners[0].Machine, m.Runners[1].Machine = newMachine("b-1"), newMachine("b-2")
	return m, server
}

// makeLate adds a late message, the given seconds after the start of the runner.
func makeLate(r *ledger.Record, at int) {
	r.Late++
	r.Findings = append(r.Findings, ledger.Finding{Kind: ledger.KindLate, From: 7, At: time.Duration(at) * time.Second, Lateness: 1500 * time.Millisecond})
}

func makeSilent(r *ledger.Record, at int, reason string) {
	r.State, r.Reason, r.ClosedAt, r.LastAt = ledger.Dropped, reason, time.Duration(at)*time.Second, time.Duration(at-38)*time.Second
	r.Received, r.Tail, r.Last = noopsEach-2, 2, noopsEach-2
	r.Findings = append(r.Findings,
		ledger.Finding{Kind: ledger.KindTail, From: noopsEach - 2, Count: 2, At: r.ClosedAt},
		ledger.Finding{Kind: ledger.KindDropped, At: r.ClosedAt, Note: reason})
}

func makeRefused(r *ledger.Record, at int, reason string) {
	*r = ledger.Record{
		ID: r.ID, State: ledger.Refused, Reason: reason, Attempts: 1, Connect: 10 * time.Second, ClosedAt: time.Duration(at) * time.Second,
		Findings: []ledger.Finding{{Kind: ledger.KindRefused, At: time.Duration(at) * time.Second, Note: reason}},
		Refusals: []ledger.Refusal{{Reason: reason, Count: 1, First: time.Duration(at) * time.Second, Last: time.Duration(at) * time.Second}},
	}
}

// While AWS drops packets of a runner, faults of its streams that dropped packets can cause are inconclusive. All other
// faults are not.
func TestPacketsDroppedByAWS(t *testing.T) {
	t.Parallel()
	const sentence = "AWS dropped 14 packets of runner 1 (h1) between 22:30:00 and 22:30:05 UTC: conntrack_allowance_exceeded"
	for name, c := range map[string]struct {
		edit     func(m *shard.Merged, server ServerLedger)
		want     Outcome
		wantText string
	}{
		"without an effect":          {func(*shard.Merged, ServerLedger) {}, Pass, ""},
		"and a message arrived late": {func(m *shard.Merged, _ ServerLedger) { makeLate(&m.Connections.Edit(0).Record, dropsAt+4) }, Invalid, "1 message arrived late"},
		"and a message was due then, and arrived later": {func(m *shard.Merged, _ ServerLedger) {
			makeLate(&m.Connections.Edit(0).Record, dropsAt+8)
			m.Connections.Edit(0).Findings[0].Lateness = 7 * time.Second
		}, Invalid, "1 message arrived late"},
		"and a message had been late before":        {func(m *shard.Merged, _ ServerLedger) { makeLate(&m.Connections.Edit(0).Record, dropsAt-3) }, Pass, ""},
		"and a message arrived late elsewhere":      {func(m *shard.Merged, _ ServerLedger) { makeLate(&m.Connections.Edit(1).Record, dropsAt+4) }, Pass, ""},
		"and a message arrived late at other times": {func(m *shard.Merged, _ ServerLedger) { makeLate(&m.Connections.Edit(0).Record, dropsAt+60) }, Pass, ""},
		"lateness is limited": {func(m *shard.Merged, _ ServerLedger) {
			m.Plan.MaxLate = 0
			makeLate(&m.Connections.Edit(0).Record, dropsAt+4)
		}, Invalid, "1 message arrived late"},
		"lateness is limited, and a message was late elsewhere": {func(m *shard.Merged, _ ServerLedger) {
			m.Plan.MaxLate = 0
			makeLate(&m.Connections.Edit(0).Record, dropsAt+4)
			makeLate(&m.Connections.Edit(1).Record, dropsAt+4)
		}, Fail, ""},
		"and a stream went silent": {func(m *shard.Merged, server ServerLedger) {
			m.Checks[0] = shard.ScriptCheck{Name: m.Checks[0].Name, Passes: 2, Fails: 1}
			makeSilent(&m.Connections.Edit(0).Record, dropsAt+20, "idle")
			server["d-0"] = ServerEntry{ID: "d-0", First: 1, Last: noopsEach - 2, Sent: noopsEach - 2}
		}, Invalid, "1 stream went silent"},
		"and a stream went silent, and a check that passed for each client also failed": {func(m *shard.Merged, server ServerLedger) {
			m.Checks[0] = shard.ScriptCheck{Name: m.Checks[0].Name, Passes: 3, Fails: 1}
			makeSilent(&m.Connections.Edit(0).Record, dropsAt+20, "idle")
			server["d-0"] = ServerEntry{ID: "d-0", First: 1, Last: noopsEach - 2, Sent: noopsEach - 2}
		}, Fail, "1 stream went silent"},
		"and a stream went silent long after": {func(m *shard.Merged, server ServerLedger) {
			makeSilent(&m.Connections.Edit(0).Record, dropsAt+35, "idle") // silent for 38 s; the last drop was 8 s after the start of the silence
		}, Fail, ""},
		"and a stream was reset": {func(m *shard.Merged, _ ServerLedger) { makeSilent(&m.Connections.Edit(0).Record, dropsAt+4, "reset") }, Fail, ""},
		"and a connect timed out": {func(m *shard.Merged, server ServerLedger) {
			m.Checks[0] = shard.ScriptCheck{Name: m.Checks[0].Name, Passes: 2}
			makeRefused(&m.Connections.Edit(0).Record, dropsAt+10, "connect_timeout")
			delete(server, "d-0")
		}, Invalid, "1 connect timed out"},
		"and a connect was answered": {func(m *shard.Merged, server ServerLedger) {
			makeRefused(&m.Connections.Edit(0).Record, dropsAt+4, "status 503")
			delete(server, "d-0")
		}, Fail, ""},
		"and a numbered noop was skipped": {func(m *shard.Merged, _ ServerLedger) {
			makeLate(&m.Connections.Edit(0).Record, dropsAt+4)
			r := &m.Connections.Edit(0).Record
			r.Received, r.Lost = noopsEach-1, 1
			r.Findings = append(r.Findings, ledger.Finding{Kind: ledger.KindLost, From: 67, To: 67, Count: 1, At: (dropsAt + 4) * time.Second})
		}, Fail, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRunOnAWS()
			addIncrease(m.Runners[0].Machine, conntrack, 14)
			c.edit(m, server)
			v := requireOutcome(t, c.want, judgeSoak(m, server, Evidence{}))
			warnings := v.Warnings
			if v.Verdict == Invalid {
				warnings = v.Reasons
			}
			text := strings.Join(warnings, "\n")
			require.Contains(t, text, sentence)
			require.Contains(t, text, "use a larger instance type")
			require.Contains(t, text, c.wantText)
		})
	}
}

// Traffic between runner and service on one machine does not use the network of AWS.
func TestPacketsDroppedByAWSWithALocalTarget(t *testing.T) {
	t.Parallel()
	m, server := cleanRunOnAWS()
	addIncrease(m.Runners[0].Machine, conntrack, 14)
	makeLate(&m.Connections.Edit(0).Record, dropsAt+4)
	v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{OneHost: true}))
	require.Contains(t, strings.Join(v.Warnings, "\n"), "AWS dropped 14 packets of runner 1 (h1)")
}

func TestQuietMachineChangesNothing(t *testing.T) {
	t.Parallel()
	m, server := cleanRunOnAWS()
	v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{OneHost: true}))
	require.Empty(t, v.Warnings)
	require.Empty(t, failedChecks(v))
	require.Len(t, v.Machines, 2)
	m, server = cleanRun() // the runners have no counters
	v = requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}))
	require.Nil(t, v.Machines)
	m.Runners[1].Machine = &machine.Record{Unknown: "it shows no counters"}
	v = requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}))
	require.Empty(t, v.Warnings)
	require.Equal(t, "it shows no counters", v.Machines[0].Unknown)
}

// Runners on one machine see the same counters, which are counted once. Each network namespace has its own counters,
// except counters of the whole machine.
func TestRunnersOnOneMachineAreCountedOnce(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]float64{"net:[b]": 14, "net:[other]": 28} {
		m, server := cleanRun()
		for i := range m.Runners {
			r := newMachine("b")
			addIncrease(addIncrease(addIncrease(r, conntrack, 14), machine.OOMKills, 1), machine.Steal, 36)
			m.Runners[i].Machine, m.Runners[i].Host = r, "h"
		}
		m.Runners[1].Machine.Namespace = namespace
		v := judgeSoak(m, server, Evidence{})
		require.Len(t, v.Machines, 1)
		host := v.Machines[0]
		require.Equal(t, []int{1, 2}, host.Runners)
		require.Equal(t, "runners 1 and 2 (h)", host.String())
		require.InDelta(t, want, host.Counter(conntrack).Increase, 0)
		require.InDelta(t, 1, host.Counter(machine.OOMKills).Increase, 0)
		require.InDelta(t, 36./7200, *host.StealShare, 1e-9)
	}
}

// Steal explains messages that were late at the same time. Only a large share of steal causes a warning by itself.
func TestStealExplainsLateness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seconds  float64
		late     int // time of a late message, in seconds after the start
		maxLate  int
		want     Outcome
		warnings string
	}{
		"a message was late":                  {36, dropsAt + 4, -1, Pass, "used the CPU of this machine (steal)"},
		"no message was late":                 {36, 0, -1, Pass, ""},
		"late, with a limit":                  {36, dropsAt + 4, 0, Invalid, "used the CPU of this machine (steal)"},
		"late at another time, with a limit":  {36, dropsAt + 60, 0, Fail, ""},
		"much steal, and no message was late": {720, 0, 0, Pass, "used 720.0 s of the CPU time of runner 1 (h1), 10 % of it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRunOnAWS()
			addIncrease(m.Runners[0].Machine, machine.Steal, c.seconds)
			m.Plan.MaxLate = c.maxLate
			if c.late > 0 {
				makeLate(&m.Connections.Edit(0).Record, c.late)
			}
			v := requireOutcome(t, c.want, judgeSoak(m, server, Evidence{}))
			if c.warnings == "" {
				require.Empty(t, v.Warnings)
			}
			require.Contains(t, strings.Join(v.Warnings, "\n"), c.warnings)
		})
	}
}

// One process reads all streams, so a control group on time shows that the hypervisor delayed none of them. The group
// does not show packets that were dropped on another stream.
func TestControlGroupShowsStealButNotPackets(t *testing.T) {
	t.Parallel()
	for counter, want := range map[string]Outcome{machine.Steal: Fail, conntrack: Invalid} {
		m, server := cleanRunOnAWS()
		withControlGroups(m, shard.ControlMoment{At: time.Unix(1_700_000_000+dropsAt, 0), Late: 1})
		addIncrease(m.Runners[0].Machine, counter, 36)
		makeLate(&m.Connections.Edit(0).Record, dropsAt+4)
		requireOutcome(t, want, judgeSoak(m, server, Evidence{}), counter)
	}
	m, server := cleanRunOnAWS()
	withControlGroups(m, shard.ControlMoment{At: time.Unix(1_700_000_000+dropsAt, 0), Late: 1, Longest: 3 * time.Second})
	addIncrease(m.Runners[0].Machine, machine.Steal, 36)
	makeLate(&m.Connections.Edit(0).Record, dropsAt+4)
	require.Equal(t, Invalid, judgeSoak(m, server, Evidence{}).Verdict)
}

// All other counters of a machine cause warnings with a remedy, and do not change the verdict.
func TestMachineWarnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(r *machine.Record)
		want string
	}{
		"overflows":                    {func(r *machine.Record) { addIncrease(addIncrease(r, machine.Overflows, 3), machine.Drops, 5) }, "3 connects found an accept queue full on runner 1 (h1), first between 22:30:00 and 22:30:05 UTC (ListenOverflows; ListenDrops 5)"},
		"drops":                        {func(r *machine.Record) { addIncrease(r, machine.Drops, 5) }, "dropped 5 connects, first between 22:30:00 and 22:30:05 UTC (ListenDrops), although no accept queue was full"},
		"retransmits":                  {func(r *machine.Record) { r.Series(machine.Retrans).Increase = 201 }, "201 of its TCP segments, 2.0 % (RetransSegs)"},
		"a small share of retransmits": {func(r *machine.Record) { r.Series(machine.Retrans).Increase = 200 }, ""},
		"retransmits of few segments": {func(r *machine.Record) {
			r.Series(machine.Retrans).Increase, r.Series(machine.OutSegs).Increase = 100, 1000
		}, "100 of its TCP segments, 10.0 % (RetransSegs)"},
		"too few retransmits": {func(r *machine.Record) {
			r.Series(machine.Retrans).Increase, r.Series(machine.OutSegs).Increase = 50, 100
		}, ""},
		"a full table": {func(r *machine.Record) {
			r.Series(machine.ConntrackEntries).MaxShare, r.Series(machine.ConntrackEntries).MaxShareUS = .9, 1_700_001_000_000_000
		}, "was 90 % full at 22:30:00 UTC (nf_conntrack_count)"},
		"a kill":      {func(r *machine.Record) { addIncrease(r, machine.OOMKills, 1) }, "killed 1 process (out of memory)"},
		"a step back": {func(r *machine.Record) { addIncrease(r, machine.ClockStep, -10) }, "jumped by -10 s, first between"},
		"a step":      {func(r *machine.Record) { addIncrease(r, machine.ClockStep, 10) }, "jumped by 10 s, first between"},
		"link-local":  {func(r *machine.Record) { addIncrease(r, machine.LinkLocal, 9) }, "AWS dropped 9 packets of runner 1 (h1)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRunOnAWS()
			m.Plan.BackendURL = "http://127.0.0.1:80"
			c.edit(m.Runners[0].Machine)
			makeLate(&m.Connections.Edit(0).Record, dropsAt+4)
			v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}))
			if c.want == "" {
				require.Empty(t, v.Warnings)
			}
			require.Contains(t, strings.Join(v.Warnings, "\n"), c.want)
		})
	}
	m, server := cleanRunOnAWS()
	addIncrease(m.Runners[0].Machine, machine.Overflows, 3)
	require.Empty(t, judgeSoak(m, server, Evidence{}).Warnings, "overflows on a runner must not cause a warning if the target is remote")
}

// The machine of the service is part of the target, so packets that AWS drops there only cause a warning. A late
// message still fails the run.
func TestPacketsDroppedByAWSOnTheStack(t *testing.T) {
	t.Parallel()
	m, server := cleanRunOnAWS()
	makeLate(&m.Connections.Edit(0).Record, dropsAt+4)
	m.Plan.MaxLate = 0
	stack := addIncrease(newMachine("b-3"), conntrack, 14)
	stack.Name = "stack"
	v := requireOutcome(t, Fail, judgeSoak(m, server, Evidence{Machines: []*machine.Record{stack}}))
	require.Contains(t, strings.Join(v.Warnings, "\n"), "AWS dropped 14 packets of stack between 22:30:00 and 22:30:05 UTC")
	require.True(t, v.Machines[2].Target)
}

// A notice of AWS is a warning if it takes effect during the run. The termination of a spot instance always is.
func TestAWSNotices(t *testing.T) {
	t.Parallel()
	m, server := cleanRunOnAWS()
	stack := newMachine("b-3")
	stack.Name = "stack"
	stack.Notices = []machine.Notice{
		{Name: "system-reboot", AtUS: 1_700_003_000_000_000},
		{Name: "instance-stop", AtUS: 1_800_000_000_000_000},
		{Name: machine.Spot + "terminate", AtUS: 1_700_003_700_000_000},
	}
	v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{Machines: []*machine.Record{stack}}))
	text := strings.Join(v.Warnings, "\n")
	require.Contains(t, text, "AWS announced system-reboot of stack for 2023-11-14 23:03:20 UTC")
	require.Contains(t, text, "AWS announced spot terminate of stack")
	require.NotContains(t, text, "instance-stop")
}
