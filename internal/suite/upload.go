package suite

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var upload = Suite{
	Name:   "upload",
	Short:  "upload large bodies one by one and in parallel, and compare their hashes",
	Script: []string{"load-tests", "http", "upload.js"},
	Target: Target{SeparateCores: true},
	Page:   Page{Doc: httpDoc},
	Assess: assessUpload,
}

// uploadRate returns the bytes of a stage, the seconds of its uploads, and the rate. Of sequential uploads, the seconds
// exclude the time between them.
func (r *Run) uploadRate(st *StageResult) (bytes, seconds, mbPerSecond float64) {
	switch st.Kind {
	case kindSequence:
		bytes, seconds = r.number("SEQUENCE_MB")*1e6*float64(st.OK.Count()), st.sum/1000
	case kindParallel:
		bytes, seconds = r.number("PARALLEL_MB")*1e6*float64(st.OK.Count()), st.Span()
	}
	if seconds > 0 {
		mbPerSecond = bytes / 1e6 / seconds
	}
	return bytes, seconds, mbPerSecond
}

func assessUpload(r *Run) verdict.Assessment {
	all, minRate, limit := r.stages(), r.number("MIN_MB_PER_SECOND"), verdict.NoLimit
	if minRate > 0 {
		limit = fmt.Sprintf("at least %g", minRate)
	}
	t := newTable("Uploads", "seconds: of sequential uploads, the sum of their times; of parallel uploads, the time from the start of the first to the end of the last",
		"stage|uploads|complete|failed|MB|seconds|MB/s")
	var planned, complete int64
	var rates, incomplete, slow []string
	saturated := 0 // slow stages with a saturated load generator
	var a verdict.Assessment
	for i := range all {
		st := &all[i]
		bytes, seconds, rate := r.uploadRate(st)
		text := fmt.Sprintf("%.1f", rate)
		planned += int64(st.Stage.Requests)
		complete += st.OK.Count()
		t.Add(row(st.Title, st.Stage.Requests, st.OK.Count(), st.Failed.Count(), fmt.Sprintf("%.0f", bytes/1e6), fmt.Sprintf("%.2f", seconds), text)...)
		if st.OK.Count() < int64(st.Stage.Requests) {
			incomplete = append(incomplete, sentence("%s: %v of %v arrived complete (%s)", st.Title, st.OK.Count(), st.Stage.Requests, mainFailure(st.Requests)))
		}
		if rate < minRate {
			reason := fmt.Sprintf("%s: %s MB/s (limit: %s)", st.Title, text, limit)
			if cause := st.Machine.GeneratorLimit(); cause != "" {
				saturated++
				reason += "; the load generator may be the cause: " + cause
			}
			slow = append(slow, reason)
		}
		rates = append(rates, text)
		a.Facts = append(a.Facts, verdict.Fact{Name: st.Kind, Value: st.Title + ": " + text + " MB/s"})
		a.Metrics = append(a.Metrics, verdict.Metric{Name: "MB/s in " + st.Kind, Unit: "MB/s", Value: rate, HigherIsBetter: true})
		a.Metrics = append(a.Metrics, st.timeMetrics("in "+st.Kind, st.isGeneratorLimited())...)
	}
	if n := countUnrequested(all); n > 0 {
		incomplete = append(incomplete, "the server sent unrequested bytes in "+format.Plural(n, "case", "cases"))
	}
	rateCheck := check(CheckRate, "MB/s", limit, strings.Join(rates, " and "), len(slow) == 0, slow...)
	completed := sentence("%v of %v", complete, planned)
	a.Checks = []verdict.Check{
		check(CheckCorrect, "every upload arrived complete", "all", completed, planned > 0 && len(incomplete) == 0, incomplete...),
		attributeIf(saturated > 0 && saturated == len(slow), rateCheck),
	}
	a.Tables = []verdict.Table{t}
	r.addRequests(&a, all, all, total(all))
	a.Passed = []string{completed + " uploads arrived complete"}
	return a
}

func mainFailure(q *Requests) string {
	if len(q.Codes) == 0 {
		return "the rest was not finished in time"
	}
	return "failure: " + codeText(q.codesByCount()[0])
}
