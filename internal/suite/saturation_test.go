package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// withUndelayedTimes sets the undelayed time of each response in the last metric to its time minus shard.WakeUps ×
// wait.
func (r *Run) withUndelayedTimes(wait time.Duration) *Run {
	m := &r.Rounds[0].Metrics[len(r.Rounds[0].Metrics)-1]
	m.Undelayed = shard.NewHistogram()
	m.Undelayed.MergeShifted(m.Trend, -shard.WakeUps*wait)
	return r
}

// withWait adds one record for each second from 10 s to 20 s. Only the record at index, from 0, has the wait.
func (r *Run) withWait(index int, wait time.Duration) *Run {
	r.addSeconds(10, 10, shard.Second{CPUSeconds: .1})
	r.Rounds[0].Seconds[index].WaitMS = wait.Milliseconds()
	return r
}

func TestGeneratorFaults(t *testing.T) {
	t.Parallel()
	incompleteRun := func(missing int) *Run { // a stage of 10 s at 20/s without some of its requests
		r := runOf("rampup", rampupParameters, shard.Stage{Name: "rate-20", Kind: kindLoad, Start: 10, Seconds: 10, Rate: 20, Connections: 20})
		return r.addAnswers("rate-20", 200-missing, 10).withUndelayedTimes(0)
	}
	timeoutRun := func(wait time.Duration, code string) *Run {
		return incompleteRun(20).addAnswers("rate-20", 20, 2100, shard.TagCode, code).withUndelayedTimes(wait)
	}
	droppedRun := func(at int64) *Run {
		r := incompleteRun(20).addCounter(shard.DroppedIterations, "rate-20", 20)
		m := &r.Rounds[0].Metrics[len(r.Rounds[0].Metrics)-1]
		m.FirstUS = (start.Unix() + 10 + at) * 1e6
		m.LastUS = m.FirstUS + 100_000
		return r
	}
	withPatience := func(run *Run) *Run { // requests wait for a connection for up to 4 s
		run.Rounds[0].Suite.Stages[0].Patience = 4
		return run
	}
	// withCounter makes a counter of the runner's machine increase for 5 s. at is relative to the start of the stage.
	withCounter := func(run *Run, counter string, at time.Duration) *Run {
		w := machine.NewRemote("", time.Second)
		for i, n := range []float64{0, 0, 14} {
			w.Add(start.Add(5*time.Second+at+time.Duration(i)*5*time.Second), machine.Reading{counter: n})
		}
		run.Rounds[0].Runners[0].Machine = w.Record()
		return run
	}
	withDroppedPackets := func(run *Run, at time.Duration) *Run { return withCounter(run, "pps_allowance_exceeded", at) }
	loopbackRun := withDroppedPackets(timeoutRun(0, "net-1050"), 0)
	loopbackRun.OneHost = true
	for name, c := range map[string]struct {
		run      *Run
		want     Status
		wantText string
	}{
		"a timeout of 2.1 s and waits of 20 ms":                                     {timeoutRun(20*time.Millisecond, "net-1050"), Bad, "10.00 % failed"},
		"a timeout of 2.1 s and a wait of 300 ms at that moment":                    {timeoutRun(300*time.Millisecond, "net-1050"), ByGenerator, "20 failures are attributed to the load generator, which waited"},
		"a connect that timed out":                                                  {timeoutRun(300*time.Millisecond, "net-1211"), ByGenerator, "20 failures are attributed to the load generator, which waited"},
		"a wait of 300 ms at another moment":                                        {timeoutRun(0, "net-1050").withWait(3, 300*time.Millisecond), Bad, "10.00 % failed"},
		"a timeout, and AWS dropped packets at that time":                           {withDroppedPackets(timeoutRun(0, "net-1050"), 0), ByGenerator, "90.0 % answered; AWS dropped 14 packets of the runners' machines"},
		"a timeout, and AWS dropped packets before":                                 {withDroppedPackets(timeoutRun(0, "net-1050"), -30*time.Second), Bad, "10.00 % failed"},
		"a timeout, and AWS dropped packets afterward":                              {withDroppedPackets(timeoutRun(0, "net-1050"), 30*time.Second), Bad, "10.00 % failed"},
		"a timeout, and AWS dropped packets, and the target is on the same machine": {loopbackRun, Bad, "10.00 % failed"},
		"a timeout, and an accept queue overflowed at that time":                    {withCounter(timeoutRun(0, "net-1050"), machine.Overflows, 0), Bad, "10.00 % failed"},
		"resets, and AWS dropped packets at that time":                              {withDroppedPackets(timeoutRun(0, "net-1220"), 0), Bad, "10.00 % failed"},
		"resets, with long waits":                                                   {timeoutRun(300*time.Millisecond, "net-1220").withWait(3, 300*time.Millisecond), Bad, "10.00 % failed"},
		"status 204, with long waits":                                               {timeoutRun(300*time.Millisecond, "status-204").withWait(3, 300*time.Millisecond), Bad, "10.00 % failed"},
		"no ports left on this host":                                                {timeoutRun(0, shard.CodeNoPort), ByGenerator, "or had no port, descriptor or IPv6 address"},
		"no route to the service":                                                   {timeoutRun(0, "net-1213"), Bad, "10.00 % failed"},
		"responses of 600 ms and waits of 20 ms":                                    {incompleteRun(180).addAnswers("rate-20", 180, 600).withUndelayedTimes(19 * time.Millisecond), Bad, "p95 600 ms"},
		"responses of 600 ms and waits of 40 ms":                                    {incompleteRun(180).addAnswers("rate-20", 180, 600).withUndelayedTimes(40 * time.Millisecond), ByGenerator, "p95 600 ms"},
		"dropped without a long wait":                                               {droppedRun(5).withWait(4, 20*time.Millisecond), Bad, "90.0 % answered"},
		"dropped after the runner waited for 700 ms":                                {droppedRun(5).withWait(4, 700*time.Millisecond), ByGenerator, "the load generator did not make 20 requests"},
		"dropped before the runner waited for 700 ms":                               {droppedRun(5).withWait(8, 700*time.Millisecond), Bad, "90.0 % answered"},
		"dropped after 4 s, and the runner had waited for 700 ms":                   {withPatience(droppedRun(5).withWait(4, 700*time.Millisecond)), Bad, "90.0 % answered"},
		"dropped after 4 s, and the runner had waited for 2.1 s":                    {withPatience(droppedRun(5).withWait(2, 2100*time.Millisecond)), ByGenerator, "the load generator did not make 20 requests"},
		"dropped while waits of the runner blocked its virtual users":               {incompleteRun(200).addAnswers("rate-20", 180, 900).withUndelayedTimes(150*time.Millisecond).addCounter(shard.DroppedIterations, "rate-20", 20), ByGenerator, "90.0 % answered"},
	} {
		got := c.run.trial()
		require.Equal(t, c.want, got.Status, "%s: %s", name, got.Reason)
		require.Contains(t, got.Reason, c.wantText, name)
	}
}

// withControlGroup adds a control group of 20 streams to the runner. Its longest delay is 2 ms, except in the bucket at
// 15 s, which is in the stage. There, late is the longest delay.
func (r *Run) withControlGroup(late time.Duration) *Run {
	m := r.Rounds[0]
	m.Control = &shard.Control{Streams: 20, LateMS: 1000, ControlCounts: shard.ControlCounts{Received: 400}}
	m.Runners[0].ControlGroup = &shard.RunnerControl{Control: *m.Control}
	for at := start.Unix(); at <= start.Unix()+30; at += 5 {
		b := shard.Bucket{Unix: at, Control: &shard.ControlCounts{Expected: 100, Received: 100, LongestUS: 2000}}
		if at == start.Unix()+15 {
			b.Control.LongestUS = late.Microseconds()
		}
		m.Series = append(m.Series, b)
	}
	return r
}

// If the control group was on time, the timeout of a request that only waited is attributed to the service, even if the
// runner recorded long waits of its own. A request with a body to send needs CPU time, which the group does not
// measure.
func TestTimelyControlGroupDoesNotExplainTimeouts(t *testing.T) {
	t.Parallel()
	run := func(sent float64) *Run {
		r := runOf("rampup", rampupParameters, shard.Stage{Name: "rate-20", Kind: kindLoad, Start: 10, Seconds: 10, Rate: 20, Connections: 20})
		return r.addAnswers("rate-20", 180, 10).withUndelayedTimes(0).addAnswers("rate-20", 20, 2100, shard.TagCode, "net-1050").withUndelayedTimes(300*time.Millisecond).addCounter("data_sent", "rate-20", 200*sent)
	}
	withEdit := func(edit func(during *shard.ControlCounts, runner *shard.RunnerControl)) *Run {
		r := run(300).withControlGroup(0)
		edit(r.Rounds[0].Series[3].Control, r.Rounds[0].Runners[0].ControlGroup)
		return r
	}
	silentGroup := withEdit(func(during *shard.ControlCounts, _ *shard.RunnerControl) { during.Received = 0 })
	closedGroup := withEdit(func(during *shard.ControlCounts, _ *shard.RunnerControl) { *during = shard.ControlCounts{} }) // no stream of the group is open
	oneSilentGroup := withEdit(func(_ *shard.ControlCounts, runner *shard.RunnerControl) {                                 // the totals of all runners are complete
		runner.Moments = []shard.ControlMoment{{At: start.Add(15 * time.Second), Silent: true}}
	})
	fewMeasurements := withEdit(func(during *shard.ControlCounts, _ *shard.RunnerControl) { during.Received = 49 })
	halfOfMeasurements := withEdit(func(during *shard.ControlCounts, _ *shard.RunnerControl) { during.Received = 50 })
	late := withEdit(func(during *shard.ControlCounts, _ *shard.RunnerControl) { during.ReferenceUS = 300_000 })
	silentBefore := withEdit(func(_ *shard.ControlCounts, runner *shard.RunnerControl) {
		runner.Moments = []shard.ControlMoment{{At: start.Add(5 * time.Second), Silent: true}, {At: start.Add(15 * time.Second)}}
	})
	for name, c := range map[string]struct {
		run  *Run
		want Status
	}{
		"less than half of the measurements": {fewMeasurements, ByGenerator},
		"half of the measurements":           {halfOfMeasurements, Bad},
		"a late reference server":            {late, ByGenerator},
		"no measurements before the stage":   {silentBefore, Bad},
		"unknown size of the requests":       {run(0).withControlGroup(0), ByGenerator},
		"no control group":                   {run(300), ByGenerator},
		"on time":                            {run(300).withControlGroup(0), Bad},
		"late":                               {run(300).withControlGroup(300 * time.Millisecond), ByGenerator},
		"on time, with large requests":       {run(10e6).withControlGroup(0), ByGenerator},
		"no measurements":                    {silentGroup, ByGenerator},
		"closed during the stage":            {closedGroup, ByGenerator},
		"the group of one runner was silent": {oneSilentGroup, ByGenerator},
	} {
		got := c.run.trial()
		require.Equal(t, c.want, got.Status, "%s: %s", name, got.Reason)
	}
}

// The waits of many threads add up even on an idle machine, so they do not count there. A control group outranks a
// stall.
func TestGeneratorLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		machine Machine
		want    string
	}{
		{Machine{Cores: 2, Runners: 10, RunDelay: .5}, ""},
		{Machine{Cores: 2, Runners: 60, RunDelay: .9}, "in each second runner threads waited 0.9 s for a core, and ran for 0.6 s"},
		{Machine{Stall: time.Second}, "a runner stalled for 1 s"},
		{Machine{Stall: time.Second, HasControl: true, ControlDelay: 60 * time.Millisecond}, ""},
		{Machine{HasControl: true, ControlDelay: 300 * time.Millisecond}, "the control group was late too, by up to 300 ms"},
	} {
		require.Equal(t, c.want, c.machine.GeneratorLimit())
	}
}

func TestLocalServicesShareTheMachineOfTheRunners(t *testing.T) {
	t.Parallel()
	for services, want := range map[string]bool{
		"http://127.0.0.1:8080":                        true,
		"http://127.0.0.1:8080,http://localhost:8081":  true,
		"http://127.0.0.1:8080,http://192.0.2.1":       false,
		"http://192.0.2.1,http://[::1]:8080,http://h2": false,
	} {
		r := runOf("rampup", rampupParameters)
		r.Rounds[0].Plan.BackendURL = services
		got := r.machine(r.Rounds[0], start, start.Add(10*time.Second))
		require.Equal(t, []bool{want, want}, []bool{got.SharedHost, got.Usage.Loopback}, services)
	}
}
