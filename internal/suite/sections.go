package suite

import (
	"fmt"

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
