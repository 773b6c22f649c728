package suite

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var uploadParameters = map[string]string{"SEQUENCE_MB": "10", "PARALLEL_MB": "5", "MIN_MB_PER_SECOND": "0"}

// uploads returns a run in which only the sequential uploads were answered.
func uploads(parameters map[string]string) *Run {
	return runOf("upload", parameters,
		shard.Stage{Name: "sequence", Title: "2 × 10 MB in sequence", Kind: kindSequence, Seconds: 60, Concurrency: 1, Requests: 2},
		shard.Stage{Name: "parallel", Title: "4 × 5 MB in parallel", Kind: kindParallel, Start: 61, Seconds: 4, Concurrency: 4, Requests: 4},
	).addAnswers("sequence", 2, 500)
}

func TestUpload(t *testing.T) {
	t.Parallel()
	v := judge(uploads(uploadParameters).addAnswers("parallel", 4, 900))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, [][]string{
		{"2 × 10 MB in sequence", "2", "2", "0", "20", "1.00", "20.0"}, // two of half a second; the pause of the client does not count
		{"4 × 5 MB in parallel", "4", "4", "0", "20", "4.00", "5.0"},
	}, table(v, "Uploads").Rows)

	v = judge(uploads(uploadParameters).addAnswers("parallel", 3, 900).addAnswers("parallel", 1, 900, shard.TagCode, shard.CodeWrongContent))
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Equal(t, []string{"4 × 5 MB in parallel: 3 of 4 arrived complete (wrong response)"}, v.Reasons)

	v = judge(uploads(uploadParameters).addAnswers("parallel", 3, 900).addCounter(shard.DroppedIterations, "parallel", 1))
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, v.Reasons[0], "3 of 4 arrived complete (the others were not finished in time)")

	p := maps.Clone(uploadParameters)
	p["MIN_MB_PER_SECOND"] = "10"
	v = judge(uploads(p).addAnswers("parallel", 4, 900))
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Equal(t, []string{"4 × 5 MB in parallel: 5.0 MB/s"}, v.Reasons)
	require.Equal(t, verdict.Fail, judge(runOf("upload", uploadParameters)).Verdict, "there was no upload")
}

// A saturated load generator sends slowly, which is no fault of the service.
func TestSlowUploadsOfASaturatedGenerator(t *testing.T) {
	t.Parallel()
	p := maps.Clone(uploadParameters)
	p["MIN_MB_PER_SECOND"] = "10"
	r := uploads(p).addAnswers("parallel", 4, 900)
	r.Rounds[0].Series = []shard.Bucket{{Unix: start.Unix() + 60, Process: shard.Process{StallMS: 900}}}
	v := judge(r)
	require.Equal(t, verdict.Invalid, v.Verdict, v.Reasons)
	require.Equal(t, []string{"4 × 5 MB in parallel: 5.0 MB/s; the load generator may be the cause: a runner stalled for 900 ms"}, v.Reasons)
	p["MIN_MB_PER_SECOND"] = "30" // the sequential uploads, without a stall, have 20 MB/s
	require.Equal(t, verdict.Fail, judge(r).Verdict)
}
