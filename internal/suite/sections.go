package suite

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// rightAnswers fails a run in which an answer came with status 200 and was not the right one: under
// no load is that in order.
func rightAnswers(q *Requests) verdict.Criterion {
	wrong := q.Codes[shard.CodeWrong]
	c := verdict.Criterion{
		Name: "answers are right", Limit: "all", Actual: fmt.Sprintf("%s wrong", whole(wrong)), Pass: wrong == 0 && q.Total() > 0,
		Why: "a wrong answer is worse than none",
	}
	if q.Total() == 0 {
		c.Actual, c.Invalid = "no request was made", true
	}
	return c
}

// accounted says whether what was sent is what was counted.
func (r *Run) accounted() []verdict.Criterion { return append(r.serverAgrees(), r.sentOnce()...) }

// sentOnce is advisory, and there where a request was sent again: over HTTP/2, after the server had said
// that it did not look at it.
func (r *Run) sentOnce() []verdict.Criterion {
	var again float64
	for _, m := range r.Rounds {
		for _, metric := range m.Metrics {
			if metric.Name == shard.SentAgain {
				again += metric.Sum
			}
		}
	}
	if again == 0 {
		return nil
	}
	return []verdict.Criterion{{
		Name: "requests are sent once", Limit: "all", Actual: count(again) + " sent again", Advisory: true,
		Why:     "who asks again is told nothing of the first refusal",
		Reasons: []string{fmt.Sprintf("the server refused %s requests unseen (HTTP/2: GOAWAY or REFUSED_STREAM), and got them again; their times have both in them", count(again))},
	}}
}

// serverAgrees holds the count of the backends, where they are ours and started for this run, against
// the runners'. What failed may or may not have reached them.
func (r *Run) serverAgrees() []verdict.Criterion {
	if !r.OneHost || len(r.Samples) == 0 || r.Samples[len(r.Samples)-1].Served == 0 {
		return nil
	}
	served := int64(r.Samples[len(r.Samples)-1].Served)
	all := r.sumOf(func(shard.Stage, map[string]string) bool { return true })
	least := all.Total() - all.Failed.Count()
	c := verdict.Criterion{
		Name: "the server's own count", Limit: whole(all.Total()), Actual: whole(served), Pass: served >= least && served <= all.Total(),
		Invalid: true, Why: "what the runners account for is what came to the backends, warm-up and health checks included",
	}
	if !c.Pass && len(r.Failures) > 0 { // which fail the run, and outrank a count that they disturbed
		c.Advisory, c.Invalid = true, false
		c.Reasons = []string{fmt.Sprintf("%s requests came to the backends that still ran at the end, the runners account for %s: what a process counted is lost when it dies",
			whole(served), whole(all.Total()))}
		return []verdict.Criterion{c}
	}
	if !c.Pass {
		c.Reasons = []string{fmt.Sprintf("%s requests came to the backends, the runners account for %s, %s of them failed: some were cut off, or someone else asked",
			whole(served), whole(all.Total()), whole(all.Failed.Count()))}
	}
	return []verdict.Criterion{c}
}

// baselineSustained asks that the lowest load is sustained: without that there is nothing to compare with.
func baselineSustained(l Limits, levels []Level) verdict.Criterion {
	c := verdict.Criterion{
		Name: "the lowest load is sustained", Limit: "good", Actual: "there was none", Invalid: true, Why: "what breaks at once has no breaking point",
	}
	if len(levels) == 0 {
		return c
	}
	status, why := l.Judge(levels[0])
	c.Actual, c.Pass, c.Invalid = string(status), status == Good, status == ByGenerator
	if why != "" {
		c.Actual += ": " + why
	}
	return c
}

// enough holds what was sustained against MIN_RATE.
func enough(r *Run, b Breaking) verdict.Criterion {
	least := r.number("MIN_RATE")
	c := verdict.Criterion{
		Name: "requests/s sustained", Limit: "any", Actual: count(b.Sustained), Pass: b.Sustained >= least,
		Invalid: b.Status == ByGenerator, Why: "what is planned with has to be sustained",
	}
	if least > 0 {
		c.Limit = "at least " + count(least)
	}
	return c
}

// generatorKeptUp is advisory: levels at which it did not are not held against the service.
func generatorKeptUp(l Limits, levels []Level) verdict.Criterion {
	c := verdict.Criterion{
		Name: "the generator kept up", Limit: "at every load", Actual: "it did", Pass: true, Advisory: true,
		Why: "a starved generator must not be read as a slow server",
	}
	var at []string
	for _, v := range levels {
		if status, why := l.Judge(v); status == ByGenerator {
			at = append(at, count(v.Load))
			c.Reasons = append(c.Reasons, fmt.Sprintf("at %s the generator was the limit, not the service: %s", count(v.Load), why))
		}
	}
	if len(at) > 0 {
		c.Actual, c.Pass = "not at "+strings.Join(at, ", "), false
	}
	return c
}

// goodMeans says what a level must keep.
func (l Limits) goodMeans() string {
	text := fmt.Sprintf("good: at most %.3g %% failed", 100*l.FailedShare)
	if l.P95 > 0 {
		text += ", p95 at most " + ms(l.P95)
	}
	return text + fmt.Sprintf(", at least %.3g %% of what was offered answered", 100*l.Answered)
}

// detailTables are the failed requests' times and errors, where there are any.
func detailTables(stages []StageResult, total *Requests) (out []verdict.Table) {
	var names []string
	var all []*Requests
	for _, st := range stages {
		names, all = append(names, st.Title), append(all, st.Requests)
	}
	if t, any := failedTable("stage", names, all); any {
		out = append(out, t)
	}
	if t, any := errorTable(total); any {
		out = append(out, t)
	}
	return out
}

// totals is a fact: what became of all requests.
func totals(total *Requests, dropped int64) verdict.Fact {
	return verdict.Fact{Name: "requests", Value: fmt.Sprintf("%s made, %s good, %s failed, %s never made",
		whole(total.Total()), whole(total.OK.Count()), ratio(total.Failed.Count(), total.Total()), whole(dropped))}
}

func stageTable(l Limits, stages []StageResult, levels []Level) verdict.Table {
	t := verdict.Table{
		Title:   "Stages",
		Note:    l.goodMeans(),
		Columns: []string{"stage", "requests", "failed", "never made", "answered/s", "p95 ms", "status"},
	}
	for i, st := range stages {
		status, _ := l.Judge(levels[i])
		answered := st.Rate * levels[i].Answered
		if st.Rate == 0 {
			answered = st.PerSecond()
		}
		t.Rows = append(t.Rows, []string{
			st.Title, whole(st.Total()), whole(st.Failed.Count()), whole(st.Dropped), count(answered), figure(quantile(st.OK, .95)), string(status),
		})
	}
	return t
}

func latencyTable(stages []StageResult, total *Requests) verdict.Table {
	t := verdict.Table{Title: "Latency of good answers, ms", Columns: latencyColumns("stage")}
	for _, st := range stages {
		t.Rows = append(t.Rows, latencyRow(st.Title, st.Requests))
	}
	t.Rows = append(t.Rows, latencyRow("all", total))
	return t
}

func recommendationTable(sustained float64, unit string) verdict.Table {
	t := verdict.Table{
		Title: "Recommended maximum loads", Note: "what was sustained, divided by the margin",
		Columns: []string{"load", "margin", unit, "for"},
	}
	for _, r := range Recommend(sustained) {
		t.Rows = append(t.Rows, []string{r.Name, fmt.Sprintf("%.1f×", r.Margin), count(r.Load), r.For})
	}
	return t
}

// stressTable holds the lowest stage against the highest.
func stressTable(stages []StageResult) verdict.Table {
	low, high := stages[0], stages[0]
	for _, st := range stages {
		if st.Rate < low.Rate {
			low = st
		}
		if st.Rate > high.Rate {
			high = st
		}
	}
	t := verdict.Table{Title: "Baseline against stress", Columns: []string{"", low.Title, high.Title, "change"}}
	row := func(name string, a, b float64, text func(float64) string) {
		t.Rows = append(t.Rows, []string{name, text(a), text(b), change(a, b)})
	}
	row("answered/s", float64(low.OK.Count())/low.Seconds, float64(high.OK.Count())/high.Seconds, count)
	row("failed", low.FailedShare(), high.FailedShare(), percentOf)
	row("mean", low.Mean(), high.Mean(), ms)
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", .5}, {"p95", .95}, {"p99", .99}} {
		row(q.name, quantile(low.OK, q.at), quantile(high.OK, q.at), ms)
	}
	return t
}
