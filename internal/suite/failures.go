package suite

import (
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// times are how long requests of a code took.
func (q *Requests) times(code string) *shard.Histogram {
	h := shard.NewHistogram()
	for _, m := range q.metrics {
		if m.Tags[shard.TagCode] == code {
			h.Merge(m.Trend)
		}
	}
	return h
}

// failures are the times and the causes of failed requests, where there are any.
func failures(stages []StageResult, sum Total) (out []verdict.Table) {
	t := verdict.Table{
		Title: "How long failed requests took, ms", Note: "apart from the good answers, by what became of them",
		Columns: []string{"stage", "outcome", "failed", "p50", "p95", "p99", "max"},
	}
	for _, st := range stages {
		for _, code := range st.byCount() {
			h := st.times(code)
			t.Add(append([]string{st.Title, what(code), format.Thousands(h.Count())}, quantiles(h, .5, .95, .99, 1)...)...)
		}
	}
	if len(t.Rows) > 0 {
		out = append(out, t)
	}
	if len(sum.Codes) > 0 {
		out = append(out, sum.causes("Errors", "code", "requests", what))
	}
	return out
}

// fewFailures is the share of a stage's requests below which nothing is said of how fast they failed.
const fewFailures = .01

// refusals says that the service refused faster than it answered, of the stage in which it refused most; none where it did
// not. A timeout is no refusal.
func refusals(stages []StageResult) []verdict.Fact {
	if len(stages) == 0 {
		return nil
	}
	most := func(st StageResult) (code string, n int64) {
		for _, code := range st.byCount() {
			if !isTimeout(code) && !isOurs(code) {
				return code, st.Codes[code]
			}
		}
		return "", 0
	}
	worst := slices.MaxFunc(stages, func(a, b StageResult) int {
		_, x := most(a)
		_, y := most(b)
		return int(x - y)
	})
	code, n := most(worst)
	refused, answered := quantile(worst.times(code), .5), quantile(worst.OK, .5)
	if share(n, worst.Total()) < fewFailures || worst.OK.Count() == 0 || refused >= answered {
		return nil
	}
	return []verdict.Fact{{Name: "refusals", Value: fmt.Sprintf(
		"the service refuses faster than it answers: at %s %s came after %s (p50), a good answer after %s; a client that tries again at once adds to the load, so let it wait, longer each time",
		worst.Title, what(code), ms(refused), ms(answered))}}
}
