package suite

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func TestWinner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, many float64
		lower     bool
		who, by   string
	}{
		{100, 150, false, cluster, "50 %"},
		{150, 100, false, single, "50 %"},
		{150, 100, true, cluster, "50 %"},
		{100, 150, true, single, "50 %"},
		{100, 109, false, "even", "–"},
		{0, 0, true, "even", "–"},
		{0, .02, true, single, "–"},
		{.02, 0, true, cluster, "–"},
	} {
		who, by := Winner(c.one, c.many, c.lower)
		require.Equal(t, c.who+" "+c.by, who+" "+by, "%+v", c)
	}
}

func TestDeployment(t *testing.T) {
	t.Parallel()
	side := func(peak, failed, evenness float64, limited bool) Side {
		return Side{Peak: peak, FailedShare: failed, Evenness: evenness, Limited: limited}
	}
	for _, c := range []struct {
		name      string
		one, many Side
		want      string
		says      string
	}{
		{"the cluster fails", side(100, 0, 1, false), side(300, .05, 1, false), single, "the cluster failed 5.00 %"},
		{"the single backend fails", side(300, .05, 1, false), side(100, 0, 1, false), cluster, "the single backend failed 5.00 %"},
		{"uneven", side(100, 0, 1, false), side(300, 0, .5, false), "neither yet", "mend the balancing first"},
		{"nobody can say", side(100, 0, 1, true), side(300, 0, 1, true), single, "throughput decides nothing"},
		{"the cluster is faster than a side that could do more", side(100, 0, 1, true), side(150, 0, 1, false), single, "throughput decides nothing"},
		{"the single backend is faster than a side that could do more", side(150, 0, 1, false), side(100, 0, 1, true), single, "throughput decides nothing"},
		{"a cluster that may be over a fifth faster", side(100, 0, 1, false), side(110, 0, 1, true), single, "throughput decides nothing"},
		{"the cluster is faster", side(100, 0, 1, false), side(150, 0, 1, false), cluster, "50 % more a second"},
		{"the cluster is faster, although its generator was at its end", side(100, 0, 1, false), side(150, 0, 1, true), cluster, "50 % more"},
		{"the single backend is faster", side(155, 0, 1, false), side(110, 0, 1, false), single, "41 % more a second"},
		{"about equal", side(100, 0, 1, false), side(115, 0, 1, false), single, "not over a fifth faster"},
	} {
		choice, why := Deployment(c.one, c.many)
		require.Equal(t, c.want, choice, c.name)
		require.Contains(t, why, c.says, c.name)
	}
}

func compared() *Run {
	return runOf("compare", fixedParameters,
		shard.Stage{Name: "level-5-single", Title: "5 at a time, single", Kind: kindLoad, Target: single, Seconds: 10, Concurrency: 5, Requests: 1000},
		shard.Stage{Name: "level-5-cluster", Title: "5 at a time, cluster", Kind: kindLoad, Target: cluster, Start: 20, Seconds: 10, Concurrency: 5, Requests: 1500},
	).answers("level-5-single", 1000, 10, shard.TagServer, "backend-1")
}

func TestCompare(t *testing.T) {
	t.Parallel()
	r := compared()
	for _, server := range []string{"backend-1", "backend-2", "backend-3"} {
		r.answers("level-5-cluster", 500, 4, shard.TagServer, server)
	}
	v := judged(r)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "single 100 answers/s, cluster 150", fact(v, "peak"))
	require.Contains(t, fact(v, "deploy"), "cluster: it answers 50 % more a second")
	require.Equal(t, []string{"5", "answers/s", "100", "150", "cluster", "50 %"}, table(v, "Level by level").Rows[0])
	require.Equal(t, []string{"5", "p95", "10.0 ms", "4.00 ms", "cluster", "150 %"}, table(v, "Level by level").Rows[2])
	require.Equal(t, []string{"cluster", "backend-2", "500", "33.33 %"}, table(v, "Answers by server").Rows[2])
}

// What is over within a second or two leaves no figures of the generator: nobody has won.
func TestLevelsTooShortToTellDecideNothing(t *testing.T) {
	t.Parallel()
	r := compared()
	for n := range 3 {
		r.answers("level-5-cluster", 1000, 4, shard.TagServer, fmt.Sprint("backend-", n))
	}
	stages := r.Rounds[0].Suite.Stages
	for i := range stages {
		stages[i].Seconds = 1.9
	}
	for i := range r.Rounds[0].Metrics {
		m := &r.Rounds[0].Metrics[i]
		m.LastUS = m.FirstUS + 1_900_000
	}
	v := judged(r)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Contains(t, fact(v, "deploy"), "throughput decides nothing")
	require.Equal(t, "unsure", table(v, "Level by level").Rows[0][4])
	require.Equal(t, "unsure", table(v, "In all: what is gained and what is paid").Rows[0][3])
	require.Equal(t, "not known", table(v, "Single").Rows[0][6])
	for _, c := range v.Criteria {
		if c.Name == "the generator was not the limit" {
			require.Equal(t, "not known at 2 of 2", c.Actual)
			require.False(t, c.Pass)
		}
	}
}

func TestAClusterOfWhichOneServerDoesAll(t *testing.T) {
	t.Parallel()
	v := judged(compared().answers("level-5-cluster", 1500, 4, shard.TagServer, "backend-1"))
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Equal(t, "only 1 of the 3 servers of the cluster answered (backend-1): CLUSTER_SIZE says how many there are", v.Reasons[0])
	v = judged(compared().answers("level-5-cluster", 1500, 4))
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, v.Reasons[0], "every server of the cluster answers: 0 named themselves, the limit is 3")
}

// All that are left share the load evenly, which must not hide the one that is gone.
func TestAClusterWithAServerThatIsDown(t *testing.T) {
	t.Parallel()
	v := judged(compared().answers("level-5-cluster", 750, 4, shard.TagServer, "backend-1").answers("level-5-cluster", 750, 4, shard.TagServer, "backend-3"))
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, fmt.Sprint(v.Reasons), "only 2 of the 3 servers of the cluster answered (backend-1, backend-3)")
	require.Contains(t, fact(v, "deploy"), "neither yet")
	require.Equal(t, []string{"evenness: least ÷ most", "–", "0.00 %", "–", "–"}, table(v, "In all: what is gained and what is paid").Rows[3])

	r := compared()
	r.Rounds[0].Suite.Parameters = maps.Clone(fixedParameters)
	r.Rounds[0].Suite.Parameters["CLUSTER_SIZE"] = "2"
	v = judged(r.answers("level-5-cluster", 750, 4, shard.TagServer, "backend-1").answers("level-5-cluster", 750, 4, shard.TagServer, "backend-3"))
	require.Equal(t, verdict.Pass, v.Verdict, "a cluster of two: %s", v.Reasons)

	r = compared()
	for n := range 4 {
		r.answers("level-5-cluster", 500, 4, shard.TagServer, fmt.Sprint("backend-", n))
	}
	v = judged(r)
	require.Equal(t, verdict.Invalid, v.Verdict)
	require.Contains(t, fmt.Sprint(v.Reasons), "4 servers answered (backend-0, backend-1, backend-2, backend-3), CLUSTER_SIZE says that there are 3")
}

func TestAMemberOfAClusterThatIsSilentAtOneLevel(t *testing.T) {
	t.Parallel()
	r := compared()
	stages := &r.Rounds[0].Suite.Stages
	*stages = append(*stages, shard.Stage{Name: "level-9-cluster", Kind: kindLoad, Target: cluster, Start: 40, Seconds: 10, Concurrency: 9, Requests: 300})
	for n := range 3 {
		r.answers("level-5-cluster", 500, 4, shard.TagServer, fmt.Sprint("backend-", n))
	}
	v := judged(r.answers("level-9-cluster", 150, 4, shard.TagServer, "backend-0").answers("level-9-cluster", 150, 4, shard.TagServer, "backend-2"))
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, fmt.Sprint(v.Reasons), "backend-1 answered none of 300 requests to the cluster at 9 at a time")
}

// A process that crashes and is started again counts from 0. The run fails for the crash, not for the count.
func TestACrashOutranksTheCountThatItDisturbed(t *testing.T) {
	t.Parallel()
	run := func() *Run {
		r := compared()
		for n := range 3 {
			r.answers("level-5-cluster", 500, 4, shard.TagServer, fmt.Sprint("backend-", n))
		}
		r.OneHost, r.Samples = true, []resources.Sample{{Unix: began.Unix(), Served: 10}, {Unix: began.Unix() + 40, Served: 2100}}
		return r
	}
	require.Equal(t, verdict.Invalid, judged(run()).Verdict, "nobody knows who asked")
	r := run()
	r.Failures = []string{"backend-2-cluster died at 10:00:00 UTC (signal: killed) and was restarted"}
	v := judged(r)
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Equal(t, r.Failures, v.Reasons)
	require.Contains(t, fmt.Sprint(v.Warnings), "what a process counted is lost when it dies")
}
