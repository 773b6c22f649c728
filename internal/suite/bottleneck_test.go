package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// stageAt returns a stage of 1,000 requests in which every resource is measured and none is full. edit may be nil.
func stageAt(rate float64, edit func(*StageResult)) StageResult {
	st := StageResult{Stage: shard.Stage{Title: count(rate) + "/s", Rate: rate, Seconds: 10}, Requests: newRequests()}
	st.Machine = Machine{
		Backend: 50, Nginx: 20, Runners: 30, Host: 100, SeparateCores: true, ServiceBusy: .7, GeneratorBusy: .3, SharedHost: true, Cores: 2,
		Usage: Usage{
			HasProcesses: true, HasProxy: true, HasHost: true, MaxCores: 2, Files: 20, MaxFiles: 1000, NginxFull: .1, Memory: 4 << 30, Available: 3 << 30,
			HasOverflows: true, Loopback: true, Link: -1, TargetCores: 1, GeneratorCores: 1,
		},
	}
	for range 1000 {
		st.OK.Record(time.Millisecond)
	}
	if edit != nil {
		edit(&st)
	}
	return st
}

func TestEachResourceCanBeTheBottleneck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		full       func(*StageResult) // edits the bad stage
		bottleneck string             // the resource with its evidence
		wantText   string             // another part of the sentence
	}{
		"the CPU limit of a cgroup": {
			func(st *StageResult) { st.Machine.Usage.Periods, st.Machine.Usage.Throttled = 100, 92 },
			"CPU limit of the service: full from 400/s on, reached 92 % of the time at 400/s, no limit at 200/s, which was good", "",
		},
		"separate cores": {
			func(st *StageResult) { st.Machine.ServiceBusy, st.Machine.Backend, st.Machine.Nginx = .99, 61, 37 },
			"CPU of the service: full from 400/s on, 99 % busy (backend 61 %, nginx 37 % of a core) at 400/s, 70 % busy (backend 50 %, nginx 20 % of a core) at 200/s, which was good",
			"CPU of the machine: 99 % busy, most of it by the service; CPU of the backend (GOMAXPROCS): 30 % of 2 cores busy",
		},
		"shared cores": {
			func(st *StageResult) {
				st.Machine.SeparateCores, st.Machine.Host, st.Machine.Usage.TargetCores, st.Machine.Runners = false, 196, 2, 60
				st.Machine.Backend, st.Machine.Nginx = 80, 25
			},
			"CPU of the service: full from 400/s on, 98 % busy (backend 80 %, nginx 25 %, others and the kernel 31 % of a core), shared with the load generator at 400/s", "",
		},
		"shared cores, without a main user": {
			func(st *StageResult) {
				st.Machine.SeparateCores, st.Machine.Host, st.Machine.Usage.TargetCores, st.Machine.Runners = false, 196, 2, 90
			},
			"CPU of the machine: full from 400/s on, 98 % busy (backend 50 %, nginx 20 %, others and the kernel 36 % of a core), shared with the load generator at 400/s",
			"CPU of the service: 70 % of a core, of cores that were 98 % busy",
		},
		"shared cores, with an unknown process of the service": {
			func(st *StageResult) {
				st.Machine = Machine{Host: 198, Runners: 20, SharedHost: true, Cores: 2, Usage: Usage{HasHost: true, Loopback: true, Link: -1, TargetCores: 2, GeneratorCores: 2}}
			},
			"CPU of the machine: full from 400/s on, 99 % busy, shared with the load generator at 400/s", "",
		},
		"other programs on shared cores, with little CPU of the service": {
			func(st *StageResult) {
				st.Machine = Machine{Host: 198, Runners: 20, Backend: 3, SharedHost: true, Cores: 2, Usage: Usage{HasProcesses: true, HasHost: true, Loopback: true, Link: -1, TargetCores: 2, GeneratorCores: 2}}
			},
			"CPU used by other programs: full from 400/s on, 99 % busy, 175 % of a core by others and the kernel at 400/s",
			"CPU of the service: 3 % of a core, of cores that were 99 % busy; CPU of the machine: 99 % busy, most of it by other programs",
		},
		"another machine, sampled by Prometheus": {
			func(st *StageResult) {
				st.Machine.SeparateCores, st.Machine.SharedHost, st.Machine.Host = false, false, 390
				st.Machine.Usage.HasProcesses, st.Machine.Usage.TargetCores = false, 4
			},
			"CPU of the machine: full from 400/s on, 98 % busy (backend 50 %, nginx 20 % of a core) at 400/s", "",
		},
		"other programs on the service's cores": {
			func(st *StageResult) { st.Machine.ServiceBusy, st.Machine.Backend, st.Machine.Nginx = 1, 20, 15 },
			"CPU used by other programs: full from 400/s on, 100 % busy, 65 % of a core by others and the kernel at 400/s, 70 % busy, 0 % of a core by others and the kernel at 200/s",
			"CPU of the service: 35 % of a core, of cores that were 100 % busy",
		},
		"other programs on shared cores": {
			func(st *StageResult) {
				st.Machine.SeparateCores, st.Machine.Host, st.Machine.Usage.TargetCores = false, 200, 2
			},
			"CPU used by other programs: full from 400/s on, 100 % busy, 100 % of a core by others and the kernel at 400/s", "",
		},
		"GOMAXPROCS": {
			func(st *StageResult) { st.Machine.Backend, st.Machine.Usage.MaxCores = 99, 1 },
			"CPU of the backend (GOMAXPROCS): full from 400/s on, 99 % of 1 core busy at 400/s", "",
		},
		"memory": {
			func(st *StageResult) { st.Machine.Usage.Available = 64 << 20 },
			"memory of the service's machine: full from 400/s on, 98 % of 4.00 GiB at 400/s, 25 % of 4.00 GiB at 200/s", "",
		},
		"a killed process": {
			func(st *StageResult) { st.Machine.Usage.Killed = 1 },
			"memory of the service's machine: full from 400/s on, the kernel killed 1 process for lack of memory at 400/s", "",
		},
		"network cards": {
			func(st *StageResult) { st.Machine.Usage.Loopback, st.Machine.Usage.Link = false, .97 },
			"bandwidth: full from 400/s on, 97 % of this machine's network cards at 400/s", "",
		},
		"AWS's allowance": {
			func(st *StageResult) { st.Machine.Usage.Loopback, st.Machine.Usage.AllowanceExceeded = false, 14 },
			"bandwidth: full from 400/s on, AWS delayed or dropped 14 packets at 400/s", "",
		},
		"descriptors of the backend": {
			func(st *StageResult) { st.Machine.Usage.Files = 1000 },
			"descriptors of the backend: full from 400/s on, 1,000 of 1,000 open at 400/s, 20 of 1,000 open at 200/s, which was good",
			"CPU of the service: 70 % busy (backend 50 %, nginx 20 % of a core); CPU of the machine: 70 % busy, most of it by the service; CPU of the backend",
		},
		"descriptors of nginx": {
			func(st *StageResult) { st.Machine.Usage.NginxFull = .99 },
			"descriptors of nginx: full from 400/s on, 99 % open in the fullest process at 400/s, 10 % open in the fullest process at 200/s", "",
		},
		"descriptors of nginx, between two samples": {
			func(st *StageResult) { st.Machine.Usage.Log.NoFiles = 7 },
			"descriptors of nginx: full from 400/s on, 7 failures for lack of a descriptor at 400/s", "",
		},
		"worker_connections": {
			func(st *StageResult) { st.Machine.Usage.Log.NoConnections = 40 },
			"connections of nginx: full from 400/s on, 40 failures for lack of a connection at 400/s, none refused at 200/s", "",
		},
		"an accept queue": {
			func(st *StageResult) { st.Machine.Usage.Overflows = 25 },
			"accept queue of the service: full from 400/s on, 25 connects found it full (ListenOverflows) at 400/s, none refused at 200/s", "",
		},
		"the accept queue of a unix socket": {
			func(st *StageResult) { st.Machine.Usage.Log.QueueFull = 300 },
			"accept queue behind nginx: full from 400/s on, 300 connects of nginx found it full at 400/s", "",
		},
		"the load generator's cores": {
			func(st *StageResult) { st.Machine.GeneratorBusy = .95 },
			"CPU of the load generator: full from 400/s on, 95 % busy (runners 30 % of a core) at 400/s, 30 % busy (runners 30 % of a core) at 200/s", "CPU of the service: 70 % busy",
		},
		"the load generator's share of all cores": {
			func(st *StageResult) {
				st.Machine.SeparateCores, st.Machine.Runners, st.Machine.Usage.GeneratorCores = false, 185, 2
			},
			"CPU of the load generator: full from 400/s on, 92 % busy at 400/s", "",
		},
		"one connect without a port": {
			func(st *StageResult) { st.Codes[shard.CodeNoPort] = 1 },
			"the generator's ports, descriptors and IPv6 addresses: full from 400/s on, 1 connect found none at 400/s", "",
		},
		"the load generator's ports": {
			func(st *StageResult) { st.Codes[shard.CodeNoPort] = 3 },
			"the generator's ports, descriptors and IPv6 addresses: full from 400/s on, 3 connects found none at 400/s", "",
		},
		"several resources, the first full one first": {
			func(st *StageResult) {
				st.Machine.ServiceBusy, st.Machine.Usage.Files, st.Machine.Usage.Overflows = 1, 1000, 90
			},
			"CPU of the service: full from 400/s on",
			"full from the same load on: descriptors of the backend: 1,000 of 1,000 open; accept queue of the service: 90 connects found it full (ListenOverflows)",
		},
	} {
		stages := []StageResult{stageAt(400, c.full), stageAt(100, nil), stageAt(200, nil), stageAt(800, nil)}
		b := findBottleneck(stages, BreakingPoint{Sustained: 200, Failed: 400, Status: Bad})
		require.Contains(t, b.String(), c.bottleneck, name)
		require.Contains(t, b.String()+b.list("", func(ResourceUse) bool { return true }), c.wantText, name)
		require.Equal(t, b.Full()[0].Advice, b.advice(), name)
		table := b.tables()[0]
		require.Equal(t, []string{"resource", "200/s", "400/s", "full from"}, table.Columns)
		require.Len(t, table.Rows, len(limitedResources))
	}
}

// A resource may be full at lower loads than the load at which the service breaks.
func TestFirstFullResource(t *testing.T) {
	t.Parallel()
	setBusy := func(st *StageResult) { st.Machine.ServiceBusy = .96 }
	setFullQueue := func(st *StageResult) { setBusy(st); st.Machine.Usage.Overflows = 9 }
	stages := []StageResult{stageAt(100, nil), stageAt(200, setBusy), stageAt(300, setBusy), stageAt(400, setFullQueue)}
	b := findBottleneck(stages, BreakingPoint{Sustained: 300, Failed: 400, Status: Bad})
	require.Contains(t, b.String(), "CPU of the service: full from 200/s on, 96 % busy")
	require.Contains(t, b.String(), "; full later: accept queue of the service: 9 connects found it full")
	stages[0] = stageAt(100, setBusy)
	stages[1] = stageAt(200, nil)
	b = findBottleneck(stages, BreakingPoint{Sustained: 300, Failed: 400, Status: Bad})
	require.InDelta(t, 300, b.Full()[0].FullFrom, 0, "the resource was not full at 200/s, so it must not count as full from 100/s on")
	setTooShort := func(st *StageResult) { st.Machine.TooShort = true }
	b = findBottleneck([]StageResult{stageAt(300, setTooShort), stages[3]}, BreakingPoint{Sustained: 300, Failed: 400, Status: Bad})
	require.Contains(t, b.String(), "of a core) at 400/s; at 300/s, which was good, the use is not known: the stage was over too soon")
	b = findBottleneck(stages[3:], BreakingPoint{Failed: 400, Status: Bad})
	require.NotContains(t, b.String(), "which was good")
	require.Equal(t, "–", b.tables()[0].Rows[0][1])
	require.Nil(t, findBottleneck(stages, BreakingPoint{Sustained: 400}), "without a bad load there must be no bottleneck")
	require.Empty(t, (*Bottleneck)(nil).facts())
}

func TestFewFailuresDoNotShowAFullResource(t *testing.T) {
	t.Parallel()
	setFewFailures := func(st *StageResult) {
		for range 9000 {
			st.OK.Record(time.Millisecond)
		}
		st.Machine.Usage.Overflows = 9
	}
	b := findBottleneck([]StageResult{stageAt(100, nil), stageAt(200, setFewFailures)}, BreakingPoint{Sustained: 100, Failed: 200, Status: Bad})
	require.Empty(t, b.Full(), "9 failures of 10,000 requests must not count as a full resource")
	require.Contains(t, b.String(), "accept queue of the service: 9 connects found it full")
}

func TestBreakingPointWithoutAFullResource(t *testing.T) {
	t.Parallel()
	b := findBottleneck([]StageResult{stageAt(100, nil), stageAt(200, nil)}, BreakingPoint{Sustained: 100, Failed: 200, Status: Bad})
	require.True(t, strings.HasPrefix(b.String(), "no measured resource was full at 200/s: CPU used by other programs: 70 % busy, 0 % of a core by others and the kernel; CPU limit of the service: no limit; CPU of the service: 70 % busy"), b.String())
	require.NotContains(t, b.String(), "not known")
	require.Equal(t, noAdvice, b.advice())

	clearMachine := func(st *StageResult) { st.Machine = Machine{Usage: Usage{Link: -1}} }
	b = findBottleneck([]StageResult{stageAt(100, clearMachine), stageAt(200, clearMachine)}, BreakingPoint{Sustained: 100, Failed: 200, Status: Bad})
	require.Equal(t, "no measured resource was full at 200/s: connections of the load generator: enough; the generator's ports, descriptors and IPv6 addresses: none refused; not known: "+
		"CPU used by other programs; CPU limit of the service; CPU of the service; CPU of the machine; CPU of the backend (GOMAXPROCS); memory of the service's machine; bandwidth; "+
		"descriptors of the backend; descriptors of nginx; connections of nginx; accept queue of the service; accept queue behind nginx; "+
		"CPU of the load generator", b.String())
	require.Equal(t, []string{"CPU of the service", "not known", "not known", "–"}, b.tables()[0].Rows[2])
	b.Status = ByGenerator
	require.Equal(t, generatorAdvice, b.advice())
	require.Equal(t, "bottleneck", b.facts()[0].Name)
}

func TestResourcesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "http.md"))
	require.NoError(t, err)
	_, tables, _ := strings.Cut(string(page), "### Bottleneck")
	tables, _, _ = strings.Cut(tables, "###")
	for _, limited := range limitedResources {
		require.Regexp(t, `(?m)^\| `+regexp.QuoteMeta(limited.Name)+` \| .* \| `+regexp.QuoteMeta(limited.Advice)+` \|$`, tables, limited.Name)
	}
	require.Contains(t, tables, " | "+noAdvice+" |\n")
}

// withSamples adds one sample per second of a service on this machine. edit may be nil.
func (r *Run) withSamples(seconds int64, edit func(at int64, s *resources.Sample)) *Run {
	r.OneHost = true
	for i := range seconds {
		s := resources.Sample{Unix: start.Unix() + i, BackendCPU: .1 * float64(i+1), NginxCPU: .05 * float64(i), Procs: 2, Files: 11, MaxFiles: 30, Served: uint64(20 * i)}
		s.BackendRuns, s.NginxRuns, s.NginxAccepted, s.RunSeconds = uint64(60*i)+1, uint64(40*i)+1, uint64(2*i), .15*float64(i)
		s.BusySeconds, s.Memory, s.Available, s.NetworkKnown = .4*float64(i), 4<<30, 3<<30, true
		if edit != nil {
			edit(i, &s)
		}
		r.Samples = append(r.Samples, s)
	}
	return r
}

func TestUsageOfAStage(t *testing.T) {
	t.Parallel()
	stage := newRampRun(20).withSamples(60, func(at int64, s *resources.Sample) {
		s.Periods, s.Throttled, s.Overflows = uint64(10*at), uint64(3*at), uint64(at)
		s.QueueFull = int(at)
		if at == 15 { // in the stage from 10 to 20 s: a backend without free descriptors does not report its limit or its CPU
			s.Files, s.MaxFiles, s.BackendCPU, s.Available = 30, 0, 0, 1<<30
		}
	}).stages()[1]
	got := stage.Machine.Usage
	require.Equal(t, Usage{
		HasProcesses: true, HasProxy: true, HasHost: true, Periods: 100, Throttled: 30, MaxCores: 2, Files: 30, MaxFiles: 30, Log: resources.NginxLog{QueueFull: 10},
		Memory: 4 << 30, Available: 1 << 30, HasOverflows: true, Overflows: 10, Loopback: true, Link: -1, TargetCores: 2, GeneratorCores: 2,
		CPU: got.CPU, Accepts: .1, ContextSwitches: 5, HasPerRequest: true,
	}, got)
	require.InDelta(t, .0075, got.CPU, 1e-9)
	require.InDelta(t, 10, stage.Machine.Backend, 1e-6, "a sample without the CPU must be ignored")
}

func TestUsageOfARemoteService(t *testing.T) {
	t.Parallel()
	record := func(name string, cores int, counters ...string) *machine.Record {
		w := machine.NewRemote(name, time.Second)
		for i := range 3 {
			reading := machine.Reading{}
			for _, c := range counters {
				reading[c] = float64(7 * i)
			}
			w.Add(start.Add(time.Duration(5+5*i)*time.Second), reading)
		}
		r := w.Record()
		r.Cores = cores
		return r
	}
	r := newRampRun(20).withSamples(60, func(at int64, s *resources.Sample) {
		s.LinkRate, s.LinkSent, s.LinkReceived = 1000, uint64(100*at), uint64(900*at)
	})
	r.OneHost = false
	got := r.stages()[1].Machine.Usage
	require.False(t, got.HasHost, "samples of the runners' machine must not count for the target's machine")
	require.InDelta(t, .9, got.Link, 1e-9)
	require.Zero(t, got.TargetCores)

	for i := range r.Samples {
		r.Samples[i].OfTarget = true
	}
	r.Machines = append(r.Machines, record("stack", 4, machine.OOMKills, "bw_out_allowance_exceeded"), record("runner-1", 8))
	got = r.stages()[1].Machine.Usage
	require.True(t, got.HasHost && got.HasOverflows && got.HasAllowanceExceeded)
	require.Equal(t, []float64{4, 14, 14}, []float64{got.TargetCores, got.Killed, got.AllowanceExceeded})

	r.Samples = nil
	got = r.stages()[1].Machine.Usage
	require.False(t, got.HasHost || got.HasProcesses || got.HasPerRequest)
}

func TestMedianFallsUnderLoad(t *testing.T) {
	t.Parallel()
	at := func(rate, median float64, edit func(*Machine)) StageResult {
		st := stageAt(rate, func(st *StageResult) {
			st.Requests = newRequests()
			for range 100 {
				st.OK.Record(time.Duration(median * float64(time.Millisecond)))
			}
		})
		st.Machine.Usage.HasPerRequest, st.Machine.Usage.ContextSwitches, st.Machine.Usage.CPU = true, 6, 300e-6
		if edit != nil {
			edit(&st.Machine)
		}
		return st
	}
	speedup := func(stages ...StageResult) string {
		var levels []Level
		for _, st := range stages {
			levels = append(levels, level(st.Rate, nil))
		}
		facts := speedupFacts(stages, levels, limits)
		if len(facts) == 0 {
			return ""
		}
		require.Equal(t, "p50 under load", facts[0].Name)
		return facts[0].Value
	}
	require.Empty(t, speedup())
	require.Empty(t, speedup(at(20, .5, nil)))
	require.Empty(t, speedup(at(20, .5, nil), at(100, .6, nil)), "the median rises, so there must be no fact")
	require.Empty(t, speedup(at(20, .5, nil), at(100, .46, nil)), "the median falls by less than a tenth, so there must be no fact")
	require.Empty(t, speedup(at(100, .5, nil), at(20, .3, nil)), "the order of the stages must not matter")
	fewResponses := at(20, .5, nil)
	fewResponses.Requests = newRequests()
	fewResponses.OK.Record(time.Second)
	require.Empty(t, speedup(fewResponses, at(100, .2, nil)), "the low load has too few responses, so there must be no fact")
	for name, c := range map[string]struct {
		low, fast func(*Machine)
		want      string
	}{
		"idle cores": {
			func(m *Machine) { m.ServiceBusy = .05 }, func(m *Machine) { m.ServiceBusy = .75 },
			"it falls from 0.50 ms at 20/s to 0.20 ms at 1,000/s: the idle time of cores fell from 95 % to 25 %, and an idle core has to wake up for a response",
		},
		"fewer connects": {
			func(m *Machine) { m.Usage.Accepts = .5 }, func(m *Machine) { m.Usage.Accepts = .001 },
			": the connections per request fell from 0.50 to 0.00",
		},
		"fewer wake-ups": {
			func(m *Machine) { m.Usage.ContextSwitches = 6 }, func(m *Machine) { m.Usage.ContextSwitches = 2 },
			": the context switches per request fell from 6.0 to 2.0, because a thread that wakes up handles several requests",
		},
		"less CPU time per response": {
			func(m *Machine) { m.Usage.CPU = 500e-6 }, func(m *Machine) { m.Usage.CPU = 100e-6 },
			": the CPU time per response fell from 500 to 100 µs, because more responses share",
		},
		"no difference": {nil, nil, ": idle cores, connections, context switches and CPU time per response differ too little to explain it"},
		"no samples": {
			func(m *Machine) { m.Usage, m.SeparateCores = Usage{}, false }, nil,
			": the cause is unknown: a stage has no samples",
		},
	} {
		require.Contains(t, speedup(at(20, .5, c.low), at(200, .4, nil), at(1000, .2, c.fast)), c.want, name)
	}
}

func TestLoadsLessThanOneApartAreSorted(t *testing.T) {
	t.Parallel()
	var stages []StageResult
	for _, rate := range []float64{.9, .3, .6} {
		stages = append(stages, stageAt(rate, nil))
	}
	require.InDelta(t, .9, findBottleneck(stages, BreakingPoint{Sustained: .6, Failed: .9, Status: Bad}).Bad.Rate, 0)
}
