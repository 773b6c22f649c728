package suite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newUploadRun returns a run in which only the sequential uploads were answered.
func newUploadRun() *Run {
	return runOf("upload", map[string]string{"SEQUENCE_MB": "10", "PARALLEL_MB": "5", "MIN_MB_PER_SECOND": "0"},
		shard.Stage{Name: "sequence", Title: "2 × 10 MB in sequence", Kind: kindSequence, Seconds: 60, Concurrency: 1, Requests: 2},
		shard.Stage{Name: "parallel", Title: "4 × 5 MB in parallel", Kind: kindParallel, Start: 61, Seconds: 4, Concurrency: 4, Requests: 4},
	).addAnswers("sequence", 2, 500)
}

func TestUpload(t *testing.T) {
	t.Parallel()
	v := judge(newUploadRun().addAnswers("parallel", 4, 900))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, [][]string{
		{"2 × 10 MB in sequence", "2", "2", "0", "20", "1.00", "20.0"}, // two of half a second; the pause of the client does not count
		{"4 × 5 MB in parallel", "4", "4", "0", "20", "4.00", "5.0"},
	}, table(v, "Uploads").Rows)
}

// A saturated load generator sends slowly, which is not a fault of the service. Without a stall, the sequential uploads
// reach 20 MB/s.
func TestUploadFindsFaults(t *testing.T) {
	t.Parallel()
	makeSlow := func(r *Run) { r.addAnswers("parallel", 4, 900).set("MIN_MB_PER_SECOND", "10") }
	makeStalled := func(r *Run) {
		makeSlow(r)
		r.addSeconds(60, 5, shard.Second{StallMS: 900})
	}
	judgeEdits(t, newUploadRun, []runEdit{
		{"a wrong response", func(r *Run) {
			r.addAnswers("parallel", 3, 900).addAnswers("parallel", 1, 900, shard.TagCode, shard.CodeWrongContent)
		}, verdict.Fail, "[4 × 5 MB in parallel: 3 of 4 arrived complete (failure: wrong response)]"},
		{"an unfinished upload", func(r *Run) { r.addAnswers("parallel", 3, 900).addCounter(shard.DroppedIterations, "parallel", 1) },
			verdict.Fail, "3 of 4 arrived complete (the rest was not finished in time)"},
		{"no upload", func(r *Run) { r.Rounds[0].Suite.Stages, r.Rounds[0].Metrics = nil, nil }, verdict.Fail, "every upload arrived complete: 0 of 0"},
		{"too slow", makeSlow, verdict.Fail, "[4 × 5 MB in parallel: 5.0 MB/s (limit: at least 10)]"},
		{"too slow, and the generator stalled", makeStalled, verdict.Invalid, "[4 × 5 MB in parallel: 5.0 MB/s (limit: at least 10); the load generator may be the cause: a runner stalled for 900 ms]"},
		{"too slow, also without a stall", func(r *Run) {
			makeStalled(r)
			r.set("MIN_MB_PER_SECOND", "30")
		}, verdict.Fail, "2 × 10 MB in sequence: 20.0 MB/s (limit: at least 30)"},
	})
}
