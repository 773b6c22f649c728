package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// apart gives service and generator a core each, of which they take so much in the stages, and nothing before and after.
// Samples come half a second off the edges of the stages.
func (r *Run) apart(service, generator float64) *Run {
	r.ServiceCores, r.RunnerCores, r.OneHost = 1, 1, true
	var s resources.Sample
	s.Host.ServiceCores, s.Host.RunnerCores = 1, 1
	for i := range int64(120) {
		at := began.Add(time.Duration(i)*time.Second - time.Second/2)
		s.Unix, s.AtUS = at.Unix(), at.UnixMicro()
		r.Samples = append(r.Samples, s)
		for _, st := range r.Rounds[0].Suite.Stages {
			part := overlap(at, at.Add(time.Second), began.Add(time.Duration(st.Start*float64(time.Second))), began.Add(time.Duration((st.Start+st.Seconds)*float64(time.Second))))
			s.Host.ServiceCores += part * service
			s.BackendCPU += part * service * .8 // the rest is the kernel's, for its packets
			s.Host.RunnerCores += part * generator
			s.BusySeconds += part * (service + generator)
		}
	}
	return r
}

// With pinned cores the side whose cores were full is the limit, of two the fuller one. Waits between threads of a
// runner do not count then.
func TestFullCoresAreTheLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		service, generator float64
		limit              Limit
		why                string
	}{
		{.97, .61, LimitService, "the service's cores were 97 % busy, the generator's 61 %"},
		{.61, .97, LimitGenerator, "the service's cores were 61 % busy, the generator's 97 %"},
		{.99, .93, LimitService, "the service's cores were 99 % busy, the generator's 93 %"},
		{.93, .99, LimitGenerator, "the service's cores were 93 % busy, the generator's 99 %"},
		{.80, .80, NoLimit, ""},
	} {
		r := levels().answers("level-10", 2000, 20).apart(c.service, c.generator)
		for i := range int64(10) {
			at := began.Unix() + 50 + i
			r.Rounds[0].Seconds = append(r.Rounds[0].Seconds, shard.Second{FromUS: at * 1e6, ToUS: (at + 1) * 1e6, CPUSeconds: c.generator, RunDelayMS: 2500})
		}
		limit, why := ofKinds(r.stages(), kindLoad)[1].Machine.Limit()
		require.Equal(t, c.limit, limit, c)
		require.Equal(t, c.why, why)
	}
}

func TestCoreUsageOfEachSide(t *testing.T) {
	t.Parallel()
	v := judged(levels().answers("level-10", 2000, 20).apart(.97, .61))
	require.Contains(t, fact(v, "peak"), "; the service was the limit: the service's cores were 97 % busy, the generator's 61 %")
	require.Equal(t, "service", table(v, "By requests at a time").Rows[1][6])
	cores := table(v, "Busy cores")
	require.Equal(t, []string{"5 at a time", "97 %", "61 %", "service"}, cores.Rows[1])
	require.Contains(t, cores.Note, "the service and the runners have 1 core and 1 core of their own")
	require.Empty(t, table(judged(levels().answers("level-10", 2000, 20)), "Busy cores").Rows, "they share all")
}

// What a request costs the service is a metric to compare runs by, whatever the rates were.
func TestThroughputCostPerRequest(t *testing.T) {
	t.Parallel()
	v := judged(levels().answers("level-10", 2000, 20).apart(.5, .5))
	cost := v.Metrics[len(v.Metrics)-1]
	require.Equal(t, "service CPU per request", cost.Name)
	require.InDelta(t, 1e6*.8*.5*35/4910, cost.Value, 1, "35 s of stages, 4,910 requests")
	require.False(t, cost.HigherIsBetter)
	v = judged(levels().answers("level-10", 2000, 20))
	require.NotEqual(t, "service CPU per request", v.Metrics[len(v.Metrics)-1].Name, "the service shows none")
}

// Cores that others filled are not full of the service.
func TestOtherProgramsOnServiceCores(t *testing.T) {
	t.Parallel()
	r := levels().answers("level-10", 2000, 20).apart(.97, .61)
	for i := range r.Samples {
		r.Samples[i].BackendCPU /= 2
	}
	limit, why := ofKinds(r.stages(), kindLoad)[1].Machine.Limit()
	require.Equal(t, LimitUnknown, limit)
	require.Equal(t, "others took most of the service's cores: these were 97 % busy, and it took 39 % of one", why)
}

// Samples of a Prometheus do not say it, and a stage that is over too soon has none.
func TestUnknownCores(t *testing.T) {
	t.Parallel()
	r := levels().answers("level-10", 2000, 20).apart(.97, .61)
	r.Samples = r.Samples[:3]
	limit, _ := ofKinds(r.stages(), kindLoad)[1].Machine.Limit()
	require.Equal(t, LimitUnknown, limit)
	r = levels().answers("level-10", 2000, 20).apart(0, 0)
	for i := range r.Samples {
		r.Samples[i].Host = resources.Host{}
	}
	limit, _ = ofKinds(r.stages(), kindLoad)[1].Machine.Limit()
	require.Equal(t, LimitUnknown, limit)
}

// An open load that is too slow while the generator's cores are full is not the service's fault, unless the service's were full.
func TestSlownessOfFullCores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		service, generator float64
		want               Status
	}{{.5, .98, ByGenerator}, {.98, .5, Bad}, {.99, .95, Bad}, {.5, .5, Bad}} {
		r := runOf("rampup", rampupParameters, shard.Stage{Name: "rate-20", Kind: kindLoad, Start: 10, Seconds: 10, Rate: 20, Connections: 20})
		r.answers("rate-20", 200, 900).withOwn(0).apart(c.service, c.generator)
		status, why := r.judgedLevel()
		require.Equal(t, c.want, status, "%v: %s", c, why)
	}
}

// Cores of the generator that others filled excuse nothing while its control group is in time: the service did not answer.
func TestSlownessWithBusyGeneratorCores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		late    time.Duration // of the control group
		runners float64       // of their core, all of which is taken
		service float64       // of its core
		foreign bool          // others took that, too
		sent    float64       // bytes of a request
		want    Status
	}{
		{time.Millisecond, .03, .3, false, 300, Bad},
		{200 * time.Millisecond, .03, .3, false, 300, ByGenerator},
		{time.Millisecond, .6, .3, false, 300, ByGenerator},
		{time.Millisecond, .03, .3, false, 1e6, ByGenerator},
		{time.Millisecond, .03, .95, true, 300, ByGenerator},
	} {
		r := runOf("rampup", rampupParameters, shard.Stage{Name: "rate-20", Kind: kindLoad, Start: 10, Seconds: 10, Rate: 20, Connections: 20})
		r.answers("rate-20", 200, 1700).withOwn(0).apart(c.service, .98).controlled(c.late).counted("data_sent", "rate-20", 200*c.sent)
		for i := range r.Rounds[0].Series {
			r.Rounds[0].Series[i].CPUPercent = 100 * c.runners
		}
		for i := range r.Samples {
			if c.foreign {
				r.Samples[i].BackendCPU /= 10
			}
		}
		status, why := r.judgedLevel()
		require.Equal(t, c.want, status, "%v: %s", c, why)
	}
}

// Nor is it the service that is slow there, while refusals are its own.
func TestSlownessWithBusyServiceCores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		service float64 // of its core, of which 99 % are taken
		codes   []string
		says    string
	}{
		{.40, nil, "at 100 requests/s the load generator was saturated (p95 1.1 s; others took most of the service's cores: these were 99 % busy, and it took 40 % of one)"},
		{.60, nil, "between 20 and 100 requests/s (p95 1.1 s)"},
		{.40, []string{shard.TagCode, "status-503"}, "between 20 and 100 requests/s (20.00 % failed"},
	} {
		r := ramp(rampupParameters, 20)
		r.Rounds[0].Suite.Stages = append(r.Rounds[0].Suite.Stages, shard.Stage{Name: "rate-100", Title: "100/s", Kind: kindLoad, Start: 30, Seconds: 10, Rate: 100, Connections: 1000})
		r.answers("rate-100", 800, 1100).answers("rate-100", 200, 1100, c.codes...).apart(.99, .30)
		for i := range r.Samples {
			r.Samples[i].BackendCPU *= c.service / (.8 * .99)
		}
		require.Contains(t, fact(judged(r), "breaks"), c.says)
	}
}

// Others may fill the generator's cores while the service fills its own.
func TestOtherProgramsOnGeneratorCores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		backend, runners float64 // of a core, all of which is taken on both sides
		want             Limit
	}{{.95, .33, LimitService}, {.95, .97, LimitGenerator}, {.80, .33, LimitGenerator}} {
		r := levels().answers("level-10", 2000, 20).apart(.99, 1)
		for i := range r.Samples {
			r.Samples[i].BackendCPU *= c.backend / (.8 * .99)
		}
		for i := range int64(10) {
			at := began.Unix() + 50 + i
			r.Rounds[0].Seconds = append(r.Rounds[0].Seconds, shard.Second{FromUS: at * 1e6, ToUS: (at + 1) * 1e6, CPUSeconds: c.runners})
		}
		limit, why := ofKinds(r.stages(), kindLoad)[1].Machine.Limit()
		require.Equal(t, c.want, limit, c)
		require.Equal(t, "the service's cores were 99 % busy, the generator's 100 %", why)
	}
}
