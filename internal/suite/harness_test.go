package suite

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// start is the start of the first stage of every run in these tests.
var start = time.UnixMicro(1_700_000_000_000_000)

func runOf(name string, parameters map[string]string, stages ...shard.Stage) *Run {
	settings := map[string]string{}
	maps.Copy(settings, parameters)
	m := &shard.Merged{
		Plan:    plan.Plan{Suite: name, TestID: "t", Runners: 1, BackendURL: "http://h"},
		Service: shard.ServiceOf(service.Noop(time.Second)),
		Suite:   &shard.Suite{Name: name, Profile: "full", Parameters: settings, Stages: stages},
		Runners: []shard.Runner{{
			Index: 1, Segment: "0:1", State: shard.Finished, StartedUS: start.UnixMicro(), EndedUS: start.Add(time.Hour).UnixMicro(), RSSMax: 9 << 20, CPUSeconds: 36,
		}},
	}
	return &Run{Rounds: []*shard.Merged{m}, Cores: 2}
}

func (r *Run) set(name, value string) *Run {
	r.Rounds[0].Suite.Parameters[name] = value
	return r
}

// addSeconds adds n records of one second each to the runner. from is the beginning of the first one, in seconds after
// start.
func (r *Run) addSeconds(from, n int64, second shard.Second) *Run {
	for i := range n {
		second.FromUS = (start.Unix() + from + i) * 1e6
		second.ToUS = second.FromUS + 1e6
		r.Rounds[0].Seconds = append(r.Rounds[0].Seconds, second)
	}
	return r
}

// addAnswers adds n requests of ms milliseconds to a stage. The first one starts, and the last one ends, with the
// stage. tags alternates names and values; without tags, the requests are good requests to the endpoint echo.
func (r *Run) addAnswers(stage string, n int, ms float64, tags ...string) *Run {
	m := r.Rounds[len(r.Rounds)-1]
	st := m.Suite.Stages[slices.IndexFunc(m.Suite.Stages, func(s shard.Stage) bool { return s.Name == stage })]
	byName := map[string]string{shard.TagStage: stage, shard.TagCode: shard.CodeOK, shard.TagEndpoint: "echo"}
	for i := 0; i+1 < len(tags); i += 2 {
		byName[tags[i]] = tags[i+1]
	}
	from := start.Add(time.Duration(st.Start * float64(time.Second)))
	metric := shard.Metric{
		Name: shard.RequestDuration, Type: "trend", Tags: byName, Trend: shard.NewHistogram(), Min: ms, Max: ms,
		FirstUS: from.UnixMicro(), LastUS: from.Add(time.Duration(st.Seconds * float64(time.Second))).UnixMicro(),
	}
	for range n {
		metric.Count++
		metric.Sum += ms
		metric.Squares += ms * ms
		metric.Trend.Record(time.Duration(ms * float64(time.Millisecond)))
	}
	metric.Undelayed = metric.Trend.Copy()
	m.Metrics = append(m.Metrics, metric)
	return r
}

func (r *Run) addCounter(name, stage string, value float64) *Run {
	m := r.Rounds[len(r.Rounds)-1]
	m.Metrics = append(m.Metrics, shard.Metric{Name: name, Type: "counter", Tags: map[string]string{shard.TagStage: stage}, Sum: value, Count: int64(value)})
	return r
}

// delayAnswers moves n good responses of a stage to ms milliseconds after the end of the stage.
func (r *Run) delayAnswers(stage string, n int, ms float64) *Run {
	h := shard.NewHistogram()
	for range n {
		h.Record(time.Duration(ms * float64(time.Millisecond)))
	}
	m := r.Rounds[len(r.Rounds)-1]
	m.Metrics = append(m.Metrics, shard.Metric{
		Name: shard.ResponseDelay, Type: "trend", Tags: map[string]string{shard.TagStage: stage, shard.TagCode: shard.CodeOK, shard.TagEndpoint: "echo"}, Trend: h, Count: int64(n),
	})
	return r
}

// trial returns the trial of the lowest load with a constant rate.
func (r *Run) trial() Trial {
	return r.limits().Judge(r.limits().levels(filterKind(r.stages(), kindLoad))[0])
}

func judge(r *Run) *verdict.Verdict {
	v, err := Judge((*verdict.Evidence)(r))
	if err != nil {
		panic(err)
	}
	return v
}

func table(v *verdict.Verdict, title string) verdict.Table {
	for _, t := range v.Tables {
		if t.Title == title {
			return t
		}
	}
	return verdict.Table{}
}

func fact(v *verdict.Verdict, name string) string {
	for _, f := range v.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func TestUnknownSuite(t *testing.T) {
	t.Parallel()
	_, err := ByName(plan.Plan{Suite: "unlisted"})
	require.ErrorContains(t, err, `the unknown suite "unlisted"`)
}

type runEdit struct {
	name     string
	edit     func(*Run)
	want     verdict.Outcome
	wantText string // in the reasons
}

func judgeEdits(t *testing.T, newRun func() *Run, edits []runEdit) {
	t.Helper()
	for _, c := range edits {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRun()
			c.edit(r)
			v := judge(r)
			require.Equal(t, c.want, v.Verdict, v.Reasons)
			require.Contains(t, fmt.Sprint(v.Reasons), c.wantText)
		})
	}
}
