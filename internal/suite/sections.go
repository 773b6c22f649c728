package suite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// wrongAnswers returns the number of answers with status 200 and wrong or truncated content.
func (q *Requests) wrongAnswers() int64 {
	return q.Codes[shard.CodeWrong] + q.Codes[shard.CodeTruncated]
}

// unrequested returns the number of connections with unrequested bytes after an answer.
func unrequested(all []StageResult) (n int64) {
	for _, st := range all {
		n += st.Unrequested
	}
	return n
}

// rightAnswers returns the check that fails a run with a wrong answer, or with unrequested bytes, at any load and in a warm-up.
// q holds the requests that the other checks count.
func rightAnswers(q Total, all []StageResult) verdict.Check {
	sum := total(all)
	wrong, more := sum.wrongAnswers(), unrequested(all)
	c := verdict.Check{
		ID: CheckCorrect, Name: "answers are right", Limit: "all", Actual: fmt.Sprintf("%s wrong", format.Thousands(wrong)), Pass: wrong+more == 0 && q.Total() > 0,
		Why: "clients act on wrong answers, and read unrequested bytes as the answer to their next request",
	}
	if q.Total() == 0 {
		c.Actual, c.Severity = "no request was made", verdict.SeverityInconclusive
		return c
	}
	if sum.OK.Count() == 0 && wrong+more == 0 {
		return c.NotJudged("no request was answered")
	}
	if n := sum.Codes[shard.CodeTruncated]; n > 0 {
		c.Actual += fmt.Sprintf(", %s of them truncated", format.Thousands(n))
	}
	if before := total(of(all, kindWarmup)).wrongAnswers(); before > 0 {
		c.Actual += fmt.Sprintf(", %s of them in the warm-up", format.Thousands(before))
	}
	if more > 0 {
		c.Actual += fmt.Sprintf(", %s of unrequested bytes after an answer", format.Plural(int(more), "case", "cases"))
	}
	return c
}

// accounted compares the count of the backends, where they are ours and started for this run, with
// the runners'. What failed may or may not have reached them.
func (r *Run) accounted(stages []StageResult) []verdict.Check {
	if !r.OneHost || len(r.Samples) == 0 || r.Samples[len(r.Samples)-1].Served == 0 {
		return nil
	}
	served := clamp.Int64(r.Samples[len(r.Samples)-1].Served)
	all := total(stages)
	least := all.Total() - all.Failed.Count()
	c := verdict.Check{
		ID: verdict.CheckOwnCount, Name: "the server's own count", Limit: format.Thousands(all.Total()), Actual: format.Thousands(served), Pass: served >= least && served <= all.Total(),
		Severity: verdict.SeverityInconclusive, Why: "what the runners account for is what came to the backends, warm-up and health checks included",
	}
	if !c.Pass && len(r.Failures)+len(r.Gone) > 0 { // which fail the run, and outrank a count that they disturbed
		c.Severity = verdict.SeverityWarning
		c.Reasons = []string{fmt.Sprintf("%s requests came to the backends that still ran at the end, the runners account for %s: what a process counted is lost when it dies",
			format.Thousands(served), format.Thousands(all.Total()))}
		return []verdict.Check{c}
	}
	if !c.Pass {
		c.Reasons = []string{fmt.Sprintf("%s requests came to the backends, the runners account for %s, %s of them failed: some were cut off, or someone else asked",
			format.Thousands(served), format.Thousands(all.Total()), format.Thousands(all.Failed.Count()))}
	}
	return []verdict.Check{c}
}

// report adds what every suite of requests says of the stages that it shows: how long answers took, what went wrong, and
// what the processes took. more goes before the processes; sum is of the requests that count.
func (r *Run) report(a *verdict.Assessment, all, shown []StageResult, sum Total, more ...verdict.Table) {
	t := latencyTable("Latency of good answers, ms", "stage")
	for _, st := range shown {
		t.Rows = append(t.Rows, latencyRow(st.Title, st.Requests))
	}
	t.Rows = append(t.Rows, latencyRow("all", sum.Requests))
	a.Facts = append(a.Facts, refusals(shown)...)
	a.Checks = append(a.Checks, r.accounted(all)...)
	a.Tables = slices.Concat(a.Tables, endpointTables(shown), append([]verdict.Table{t}, firstByteTable(shown)...), failures(shown, sum), more, r.resourceTables(all, shown))
}

// firstByteTable tells a slow answer from a long one.
func firstByteTable(shown []StageResult) []verdict.Table {
	t := latencyTable("Time to the first byte of good answers, ms", "stage")
	for _, st := range shown {
		if st.firstByte.OK.Count() > 0 {
			t.Rows = append(t.Rows, latencyRow(st.Title, st.firstByte))
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []verdict.Table{t}
}

// causes lists what went wrong by code, the most frequent first.
func (q *Requests) causes(title, code, unit string, words func(string) string) verdict.Table {
	t := verdict.Table{Title: title, Columns: []string{code, "what", unit, "of failed", "of all"}}
	for _, code := range q.byCount() {
		n := q.Codes[code]
		t.Add(code, words(code), format.Thousands(n), percentOf(share(n, q.Failed.Count())), percentOf(share(n, q.Total())))
	}
	return t
}

// byCount are the codes of failures, the most frequent first.
func (q *Requests) byCount() []string {
	return slices.SortedFunc(maps.Keys(q.Codes), func(a, b string) int {
		return cmp.Or(cmp.Compare(q.Codes[b], q.Codes[a]), cmp.Compare(a, b))
	})
}

// latencyTable has a latencyRow for each part of the requests.
func latencyTable(title, part string) verdict.Table {
	return verdict.Table{Title: title, Columns: []string{part, "n", "min", "mean", "sd", "p50", "p75", "p95", "p99", "max"}}
}

func latencyRow(name string, q *Requests) []string {
	if q.OK.Count() == 0 {
		return []string{name, "0", "–", "–", "–", "–", "–", "–", "–", "–"}
	}
	return append([]string{name, format.Thousands(q.OK.Count()), figure(q.Min()), figure(q.Mean()), figure(q.StdDev())}, quantiles(q.OK, .5, .75, .95, .99, 1)...)
}
