package verdict

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// slopeCases lists the figures whose growth a setting limits. limit returns the setting. set sets the figure of one
// bucket, in MiB, milliseconds or streams. If that value grows by 1 per hour, the figure grows by unit per hour.
var slopeCases = map[string]struct {
	check CheckID
	limit func(p *plan.Plan) *float64
	set   func(b *shard.Bucket, s *resources.Sample, value float64)
	unit  float64
}{
	"memory": {
		CheckMemorySlope, func(p *plan.Plan) *float64 { return &p.MaxMemorySlope },
		func(_ *shard.Bucket, s *resources.Sample, value float64) { s.BackendRSS = uint64(value * (1 << 20)) }, 1,
	},
	"lateness": {
		CheckLatenessSlope, func(p *plan.Plan) *float64 { return &p.MaxLatenessSlope },
		func(b *shard.Bucket, _ *resources.Sample, value float64) { b.Lateness = latenessOf(value) }, 1,
	},
	"reconnects": {
		CheckReconnectSlope, func(p *plan.Plan) *float64 { return &p.MaxReconnectSlope },
		func(b *shard.Bucket, _ *resources.Sample, value float64) { b.Opened = int(value) }, 120,
	},
	"connect time": {
		CheckConnectSlope, func(p *plan.Plan) *float64 { return &p.MaxConnectSlope },
		func(b *shard.Bucket, _ *resources.Sample, value float64) {
			b.Opened, b.ConnectUS = 2, int64(2*value*1000)
		}, 1,
	},
}

func latenessOf(ms float64) *shard.Packed {
	h := shard.NewHistogram()
	h.Record(time.Duration(ms * float64(time.Millisecond)))
	return h.Pack()
}

// judgeHour judges a run of an hour with windows. value returns the figure of the named case at each bucket.
func judgeHour(t *testing.T, name string, limit, windowS float64, value func(hour float64) float64, edit func(b *shard.Bucket)) *Verdict {
	t.Helper()
	const start = 1_700_000_000
	c := slopeCases[name]
	m, server := cleanRun()
	*c.limit(&m.Plan), m.Plan.WindowS = limit*c.unit, windowS
	var samples []resources.Sample
	for at := range int64(120) { // one bucket each half minute
		b, s := shard.Bucket{Unix: start + 30*at, Open: 3, Noops: 1}, resources.Sample{Unix: start + 30*at}
		c.set(&b, &s, value(float64(at)/120))
		if edit != nil {
			edit(&b)
		}
		m.Series, samples = append(m.Series, b), append(samples, s)
	}
	return judgeSoak(m, server, Evidence{Samples: samples})
}

func TestSlopesHaveLimits(t *testing.T) {
	t.Parallel()
	rises := func(hour float64) float64 { return 300 + 90*hour }
	noise := func(hour float64) float64 { return 300 + 90*rand.New(rand.NewPCG(37, uint64(hour*120))).Float64() }
	for name, c := range map[string]struct {
		limit, windowS float64
		value          func(hour float64) float64
		want           Outcome
	}{
		"no limit":                 {0, 300, rises, Pass},
		"below the limit":          {120, 300, rises, Pass},
		"above the limit":          {5, 300, rises, Fail},
		"flat":                     {5, 300, func(float64) float64 { return 300 }, Pass},
		"noisy and flat":           {5, 300, noise, Pass},
		"noisy, above the limit":   {5, 300, func(hour float64) float64 { return noise(hour) + 300*hour }, Fail},
		"falls":                    {5, 300, func(hour float64) float64 { return 300 - 90*hour }, Pass},
		"a step in the last tenth": {5, 300, func(hour float64) float64 { return map[bool]float64{false: 300, true: 900}[hour > .9] }, Pass},
		"few windows":              {5, 1200, rises, Invalid},
	} {
		for figure := range slopeCases {
			t.Run(figure+"/"+name, func(t *testing.T) {
				t.Parallel()
				v := requireOutcome(t, c.want, judgeHour(t, figure, c.limit, c.windowS, c.value, nil))
				if c.limit > 0 {
					at := slices.IndexFunc(v.Checks, func(check Check) bool { return check.ID == slopeCases[figure].check })
					require.GreaterOrEqual(t, at, 0)
					assert.Equal(t, c.want == Pass, v.Checks[at].Pass)
				}
				if c.want == Invalid {
					assert.Contains(t, v.Reasons[0], "_SLOPE needs 10 windows with a known value; shorten WINDOW, or soak longer")
				}
			})
		}
	}
}

func TestSlopeIsNamed(t *testing.T) {
	t.Parallel()
	for _, figure := range []string{"memory", "connect time"} {
		v := requireOutcome(t, Invalid, judgeHour(t, figure, 5, 300, func(float64) float64 { return 0 }, nil))
		require.Contains(t, v.Reasons[0], "the growth is unknown")
	}
	v := judgeHour(t, "memory", 5, 300, func(hour float64) float64 { return 300 + 90*hour }, nil)
	require.Equal(t, "the memory of the target grew by +90.0 MiB per hour (95 % interval: +90.0 MiB to +90.0 MiB); the limit is 5.0 MiB (MAX_MEMORY_SLOPE)", v.Reasons[0])
	require.Equal(t, []string{"memory of the target +90.0 MiB per hour (95 % interval: +90.0 MiB to +90.0 MiB)"}, v.Trends())
}

// If the lateness of the control group grows too, the generator may have caused the growth.
func TestGeneratorThatSlowsDownLeavesLatenessUndecided(t *testing.T) {
	t.Parallel()
	rises := func(hour float64) float64 { return 300 + 90*hour }
	for limit, want := range map[float64]Outcome{5: Invalid, 120: Pass} {
		v := judgeHour(t, "lateness", limit, 300, rises, func(b *shard.Bucket) {
			b.Control = &shard.ControlCounts{Expected: 1, Received: 1, LongestUS: int64(1000 * rises(float64(b.Unix-1_700_000_000)/3600))}
		})
		require.Equal(t, want, v.Verdict, v.Reasons)
	}
	requireOutcome(t, Fail, judgeHour(t, "lateness", 5, 300, rises, func(b *shard.Bucket) { b.Control = &shard.ControlCounts{Expected: 1, Received: 1, LongestUS: 5000} }), "the control group was on time")
}
