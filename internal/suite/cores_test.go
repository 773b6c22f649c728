package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// setCores gives service and generator one core each, and sets their CPU time per second in the stages. Outside the
// stages it is 0. Samples are half a second away from the start and the end of a stage.
func (r *Run) setCores(service, generator float64) *Run {
	r.ServiceCores, r.RunnerCores, r.OneHost = 1, 1, true
	var s resources.Sample
	s.Host.ServiceCores, s.Host.RunnerCores = 1, 1
	for i := range int64(120) {
		at := start.Add(time.Duration(i)*time.Second - time.Second/2)
		s.Unix, s.AtUS = at.Unix(), at.UnixMicro()
		r.Samples = append(r.Samples, s)
		for _, st := range r.Rounds[0].Suite.Stages {
			part := overlap(at, at.Add(time.Second), start.Add(time.Duration(st.Start*float64(time.Second))), start.Add(time.Duration((st.Start+st.Seconds)*float64(time.Second))))
			s.Host.ServiceCores += part * service
			s.BackendCPU += part * service * .8 // the kernel used the rest for packets
			s.Host.RunnerCores += part * generator
			s.BusySeconds += part * (service + generator)
		}
	}
	return r
}

// limit returns the limit of the level of 10 requests at a time.
func (r *Run) limit() (limit Limit, reason string) {
	return filterKind(r.stages(), kindLoad)[1].Machine.Limit()
}

// With separate cores, the side whose cores were full is the limit. If the cores of both sides were full, the limit is
// the fuller side, unless other programs used its cores. Time that a runner's threads wait for one another does not
// count.
func TestFullCoresAreTheLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		service, generator float64 // busy share of the core of each side
		backend, runners   float64 // shares of a core that the backend and the runners used
		limit              Limit
		reason             string
	}{
		{.97, .61, .78, .61, LimitService, "the service's cores were 97 % busy, the generator's 61 %"},
		{.61, .97, .49, .97, LimitGenerator, "the service's cores were 61 % busy, the generator's 97 %"},
		{.99, .93, .79, .93, LimitService, "the service's cores were 99 % busy, the generator's 93 %"},
		{.93, .99, .74, .99, LimitGenerator, "the service's cores were 93 % busy, the generator's 99 %"},
		{.80, .80, .64, .80, NoLimit, ""},
		{.97, .61, .39, .61, LimitUnknown, "other programs used most of the service's cores: these were 97 % busy, and the service used 39 % of one"},
		{.99, 1, .95, .33, LimitService, "the service's cores were 99 % busy, the generator's 100 %"},
		{.99, 1, .95, .97, LimitGenerator, "the service's cores were 99 % busy, the generator's 100 %"},
		{.99, 1, .80, .55, LimitGenerator, "the service's cores were 99 % busy, the generator's 100 %"},
		{.61, .98, .49, .08, LimitUnknown, "other programs used most of the generator's cores: these were 98 % busy, and the runners used 8 % of one"},
	} {
		r := newThroughputRun().addAnswers("level-10", 2000, 20).setCores(c.service, c.generator)
		r.addSeconds(50, 10, shard.Second{CPUSeconds: c.runners, RunDelayMS: 2500})
		for i := range r.Samples {
			r.Samples[i].BackendCPU *= c.backend / (.8 * c.service)
		}
		limit, reason := r.limit()
		require.Equal(t, c.limit, limit, c)
		require.Equal(t, c.reason, reason)
	}
}

func TestCoreUsageOfEachSide(t *testing.T) {
	t.Parallel()
	v := judge(newThroughputRun().addAnswers("level-10", 2000, 20).setCores(.97, .61))
	require.Contains(t, fact(v, "peak"), "; the service was the limit: the service's cores were 97 % busy, the generator's 61 %")
	require.Equal(t, "service", table(v, "By requests at a time").Rows[1][6])
	cores := table(v, "Busy cores")
	require.Equal(t, []string{"5 at a time", "97 %", "61 %", "service"}, cores.Rows[1])
	require.Contains(t, cores.Note, "reserved cores: 1 core for the service, 1 core for the runners")
	require.Empty(t, table(judge(newThroughputRun().addAnswers("level-10", 2000, 20)), "Busy cores").Rows, "shared cores must have no table")
}

// The CPU time per request is a metric to compare runs with different rates.
func TestThroughputCostPerRequest(t *testing.T) {
	t.Parallel()
	r := newThroughputRun().addAnswers("level-10", 2000, 20).setCores(.5, .5)
	r.Samples[20].BackendCPU, r.Samples[20].NginxCPU = 0, 0 // unknown, which must not count as a restart
	v := judge(r)
	cost := v.Metrics[len(v.Metrics)-1]
	require.Equal(t, "service CPU per request", cost.Name)
	require.InDelta(t, 1e6*.8*.5*34.5/4910, cost.Value, 1, "35 s of stages without the first half, in which the counter is 0; 4,910 requests")
	require.False(t, cost.HigherIsBetter)
	v = judge(newThroughputRun().addAnswers("level-10", 2000, 20))
	require.NotEqual(t, "service CPU per request", v.Metrics[len(v.Metrics)-1].Name, "without the CPU time of the service there must be no such metric")
}

// Samples from Prometheus lack the usage of cores, and a very short stage has no samples.
func TestUnknownCores(t *testing.T) {
	t.Parallel()
	r := newThroughputRun().addAnswers("level-10", 2000, 20).setCores(.97, .61)
	r.Samples = r.Samples[:3]
	limit, _ := r.limit()
	require.Equal(t, LimitUnknown, limit)
	r = newThroughputRun().addAnswers("level-10", 2000, 20).setCores(0, 0)
	for i := range r.Samples {
		r.Samples[i].Host = resources.Host{}
	}
	limit, _ = r.limit()
	require.Equal(t, LimitUnknown, limit)
}

// If responses at a constant rate are slow while the generator's cores are full, the service is not at fault, unless
// its own cores are full.
func TestSlownessOfFullCores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		service, generator float64
		want               Status
	}{{.5, .98, ByGenerator}, {.98, .5, Bad}, {.99, .95, Bad}, {.5, .5, Bad}} {
		r := runOf("rampup", rampupParameters, shard.Stage{Name: "rate-20", Kind: kindLoad, Start: 10, Seconds: 10, Rate: 20, Connections: 20})
		r.addAnswers("rate-20", 200, 900).withUndelayedTimes(0).setCores(c.service, c.generator)
		got := r.trial()
		require.Equal(t, c.want, got.Status, "%v: %s", c, got.Reason)
	}
}

// If other programs filled the generator's cores but its control group was on time, slowness is attributed to the
// service.
func TestSlownessWithBusyGeneratorCores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		late    time.Duration // lateness of the control group
		runners float64       // the share that the runners used of their core, which is full
		service float64       // the used share of the core of the service
		foreign bool          // other programs used most of the core of the service
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
		r.addAnswers("rate-20", 200, 1700).withUndelayedTimes(0).setCores(c.service, .98).withControlGroup(c.late).addCounter("data_sent", "rate-20", 200*c.sent)
		r.addSeconds(10, 10, shard.Second{CPUSeconds: c.runners})
		for i := range r.Samples {
			if c.foreign {
				r.Samples[i].BackendCPU /= 10
			}
		}
		got := r.trial()
		require.Equal(t, c.want, got.Status, "%v: %s", c, got.Reason)
	}
}

// If other programs fill the service's cores, slowness is not attributed to the service; refusals are.
func TestSlownessWithBusyServiceCores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		service  float64 // the share that the service used of its core, which is 99 % busy
		codes    []string
		wantText string
	}{
		{.40, nil, "at 100 requests/s the load generator was saturated (p95 1.1 s; other programs used most of the service's cores: these were 99 % busy, and the service used 40 % of one)"},
		{.60, nil, "between 20 and 100 requests/s (p95 1.1 s)"},
		{.40, []string{shard.TagCode, "status-503"}, "between 20 and 100 requests/s (20.00 % failed"},
	} {
		r := newRampRun(20)
		r.Rounds[0].Suite.Stages = append(r.Rounds[0].Suite.Stages, shard.Stage{Name: "rate-100", Title: "100/s", Kind: kindLoad, Start: 30, Seconds: 10, Rate: 100, Connections: 1000})
		r.addAnswers("rate-100", 800, 1100).addAnswers("rate-100", 200, 1100, c.codes...).setCores(.99, .30)
		for i := range r.Samples {
			r.Samples[i].BackendCPU *= c.service / (.8 * .99)
		}
		require.Contains(t, fact(judge(r), "breaking point"), c.wantText)
	}
}
