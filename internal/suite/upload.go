package suite

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var upload = Suite{
	Name:   "upload",
	Short:  "upload large bodies one by one and in parallel, and compare what arrived by its hash",
	Script: []string{"load-tests", "http", "upload.js"},
	Settings: []Setting{
		{"SEQUENCE", "uploads one after the other"},
		{"SEQUENCE_MB", "size of each of these, in MB"},
		{"PARALLEL", "uploads at once"},
		{"PARALLEL_MB", "size of each of these, in MB"},
		{"STAGE_SECONDS", "seconds that the sequence, and the parallel part, may each take at most"},
		{"TIMEOUT_SECONDS", "seconds that one upload may take at most"},
		{"MIN_MB_PER_SECOND", "rate that both parts have to reach for a pass; 0: any"},
	},
	Target: Target{OwnCores: true},
	Page:   Page{Doc: httpDoc},
	Assess: assessUpload,
}

// An uploaded stage is how much arrived, and how fast.
type uploaded struct {
	StageResult
	bytes, seconds float64
}

// uploads are the stages with their sizes. One after the other, only the time of the uploads
// themselves counts, not what the client does between them.
func (r *Run) uploads(stages []StageResult) (out []uploaded) {
	for _, st := range stages {
		u := uploaded{StageResult: st}
		switch st.Kind {
		case kindSequence:
			u.bytes, u.seconds = r.number("SEQUENCE_MB")*1e6*float64(st.OK.Count()), st.sum/1000
		case kindParallel:
			u.bytes, u.seconds = r.number("PARALLEL_MB")*1e6*float64(st.OK.Count()), st.Span()
		}
		out = append(out, u)
	}
	return out
}

func (u uploaded) rate() float64 {
	if u.seconds <= 0 {
		return 0
	}
	return u.bytes / 1e6 / u.seconds
}

func assessUpload(r *Run) verdict.Assessment {
	every := r.stages()
	all, sum := r.uploads(every), total(every)
	t := verdict.Table{
		Title: "Uploads", Note: "one after the other, by the time of the uploads alone; in parallel, from the first byte to the last",
		Columns: []string{"stage", "uploads", "whole", "failed", "MB", "seconds", "MB/s"},
	}
	lost := verdict.Check{ID: CheckCorrect, Name: "every upload arrived whole", Limit: "all", Why: "the server's hash of what came is the hash of what was sent"}
	fast := verdict.Check{ID: CheckRate, Name: "MB/s", Limit: "any", Pass: true, Why: "how long people wait for their uploads"}
	if least := r.number("MIN_MB_PER_SECOND"); least > 0 {
		fast.Limit = fmt.Sprintf("at least %.1f", least)
	}
	var planned, whole64 int64
	var rates []string
	var a verdict.Assessment
	for _, u := range all {
		planned += int64(u.Stage.Requests)
		whole64 += u.OK.Count()
		t.Add(u.Title, format.Thousands(u.Stage.Requests), format.Thousands(u.OK.Count()), format.Thousands(u.Failed.Count()), fmt.Sprintf("%.0f", u.bytes/1e6),
			fmt.Sprintf("%.2f", u.seconds), fmt.Sprintf("%.1f", u.rate()))
		if u.OK.Count() < int64(u.Stage.Requests) {
			lost.Reasons = append(lost.Reasons, fmt.Sprintf("%s: %d of %d arrived whole (%s)", u.Title, u.OK.Count(), u.Stage.Requests, worst(u.Requests)))
		}
		if u.rate() < r.number("MIN_MB_PER_SECOND") {
			fast.Pass = false
			fast.Reasons = append(fast.Reasons, fmt.Sprintf("%s: %.1f MB/s", u.Title, u.rate()))
		}
		rates = append(rates, fmt.Sprintf("%.1f", u.rate()))
		a.Facts = append(a.Facts, verdict.Fact{Name: u.Kind, Value: fmt.Sprintf("%s: %.1f MB/s", u.Title, u.rate())})
		a.Metrics = append(a.Metrics, verdict.Metric{Name: "MB/s in " + u.Kind, Unit: "MB/s", Value: u.rate(), HigherIsBetter: true})
		a.Metrics = append(a.Metrics, u.timeMetrics("in "+u.Kind, u.limited())...)
	}
	fast.Actual = strings.Join(rates, " and ")
	lost.Actual, lost.Pass = fmt.Sprintf("%d of %d", whole64, planned), planned > 0 && whole64 == planned
	if n := unrequested(every); n > 0 {
		lost.Pass = false
		lost.Reasons = append(lost.Reasons, fmt.Sprintf("the server sent unrequested bytes after its answer in %s", format.Plural(int(n), "case", "cases")))
	}
	a.Checks, a.Tables = []verdict.Check{lost, fast}, []verdict.Table{t}
	r.addRequests(&a, every, every, sum)
	a.Passed = []string{fmt.Sprintf("%d of %d uploads arrived whole", whole64, planned)}
	return a
}

// worst is the most frequent error in words.
func worst(q *Requests) string {
	if len(q.Codes) == 0 {
		return "the others were not finished in time"
	}
	return codeText(q.codesByCount()[0])
}
