package suite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ofSingle, ofCluster []float64
		lowerIsBetter       bool
		obstacle            string
		winner              string
		wantText            string
	}{
		"the cluster":                       {ofSingle: []float64{100, 101, 99}, ofCluster: []float64{150, 151, 149}, winner: cluster, wantText: "winner: cluster by 50 % (interval of the difference: +49 % … +51 %)"},
		"the single backend":                {ofSingle: []float64{150, 151, 149}, ofCluster: []float64{100, 101, 99}, winner: single, wantText: "winner: single by 50 % (interval of the difference: -34 % … -33 %)"},
		"a lower figure is better, single":  {ofSingle: []float64{100, 101, 99}, ofCluster: []float64{150, 151, 149}, lowerIsBetter: true, winner: single, wantText: "by 50 %"},
		"a lower figure is better, cluster": {ofSingle: []float64{150, 151, 149}, ofCluster: []float64{100, 101, 99}, lowerIsBetter: true, winner: cluster, wantText: "by 50 %"},
		"rounds differ for both targets":    {ofSingle: []float64{100, 50, 200}, ofCluster: []float64{151, 75, 299}, winner: cluster, wantText: "by 50 %"},
		"no significant difference":         {ofSingle: []float64{100, 102, 98}, ofCluster: []float64{101, 98, 104}, wantText: "no winner: the interval of the difference is -11 % … +14 %; the difference is not significant"},
		"small significant difference":      {ofSingle: []float64{100, 101, 99}, ofCluster: []float64{105, 106, 104}, wantText: "no winner: the interval of the difference is +5 % … +5 %; the difference is under 10 %"},
		"large difference by chance":        {ofSingle: []float64{100, 100, 100}, ofCluster: []float64{100, 160, 240}, wantText: "the difference is not significant"},
		"saturated generator":               {ofSingle: []float64{100, 101, 99}, ofCluster: []float64{150, 151, 149}, obstacle: "the load generator was saturated while it tested the cluster", wantText: "no winner: the interval of the difference is +49 % … +51 %; the load generator was saturated while it tested the cluster"},
		"two rounds":                        {ofSingle: []float64{100, 100}, ofCluster: []float64{150, 180}, wantText: "the difference is not significant"},
		"one round":                         {ofSingle: []float64{100}, ofCluster: []float64{150}, wantText: "no winner: a comparison requires at least two rounds"},
		"no responses in a round":           {ofSingle: []float64{100, 100, 0}, ofCluster: []float64{150, 150, 150}, wantText: "no winner: a comparison requires at least two rounds, with a response in each"},
	} {
		got := Compare(c.ofSingle, c.ofCluster, c.lowerIsBetter, Reason{Sentence: c.obstacle})
		require.Equal(t, c.winner, got.Winner, name)
		require.Contains(t, got.Sentence(), c.wantText, name)
	}
}

func TestDeployment(t *testing.T) {
	t.Parallel()
	side := func(peak, failed, evenness float64) Side {
		return Side{Peak: peak, FailedShare: failed, Evenness: evenness}
	}
	for _, c := range []struct {
		name                string
		ofSingle, ofCluster Side
		peaks               Comparison
		want                string
		wantText            string
	}{
		{"the cluster fails", side(100, 0, 1), side(300, .05, 1), Comparison{Winner: cluster}, single, "the cluster failed 5.00 %"},
		{"the single backend fails", side(300, .05, 1), side(100, 0, 1), Comparison{Winner: single}, cluster, "the single backend failed 5.00 %"},
		{"uneven", side(100, 0, 1), side(300, 0, .5), Comparison{Winner: cluster}, "neither yet", "fix the balancing first"},
		{"no winner", side(100, 0, 1), side(300, 0, 1), Comparison{}, single, "neither has a provably higher throughput"},
		{"the cluster is faster", side(100, 0, 1), side(150, 0, 1), Comparison{Winner: cluster, Margin: "50 %"}, cluster, "50 % more requests per second"},
		{"the cluster is a little faster", side(100, 0, 1), side(115, 0, 1), Comparison{Winner: cluster, Margin: "15 %"}, single, "not over a fifth faster"},
		{"the single backend is faster", side(155, 0, 1), side(110, 0, 1), Comparison{Winner: single, Margin: "41 %"}, single, "41 % more requests per second"},
	} {
		choice, reason := Deployment(c.ofSingle, c.ofCluster, c.peaks)
		require.Equal(t, c.want, choice, c.name)
		require.Contains(t, reason, c.wantText, c.name)
	}
}

// newComparisonRun returns a run of the suite cluster with one round per argument. In each round, the targets get 5
// requests at a time, for 10 s each. The single backend answers about 1,000 requests, the cluster the given number.
func newComparisonRun(ofCluster ...int) *Run {
	var stages []shard.Stage
	for i := range ofCluster {
		for n, target := range []string{single, cluster} {
			stages = append(stages, shard.Stage{Name: fmt.Sprintf("level-5-%s-%d", target, i), Title: "5", Kind: kindLoad, Target: target, Start: float64(2*i+n) * 11, Seconds: 10, Concurrency: 5})
		}
	}
	r := runOf("cluster", fixedParameters, stages...)
	for i, n := range ofCluster {
		r.addAnswers(fmt.Sprintf("level-5-single-%d", i), 999+i, 10, shard.TagServer, "backend-1")
		for member := range 3 {
			r.addAnswers(fmt.Sprintf("level-5-cluster-%d", i), n/3, 4, shard.TagServer, fmt.Sprint("backend-", member))
		}
	}
	return r
}

func TestClusterByRounds(t *testing.T) {
	t.Parallel()
	v := judge(newComparisonRun(1500, 1530, 1470).setCores(.97, .61))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Contains(t, fact(v, "peak"), "single 100 responses/s with 5 at a time; the service was the limit: the service's cores were 97 % busy, the generator's 61 %; cluster 150 with")
	require.Contains(t, fact(v, "winner"), "winner: cluster by 50 %")
	require.Contains(t, fact(v, "deploy"), "cluster: it answers 50 % more requests per second")
	levels := table(v, "Level by level").Rows
	require.Equal(t, []string{"5", "responses/s", "100", "150", "+43 % … +58 %", "cluster", "50 %"}, levels[0])
	require.Equal(t, []string{"5", "p95", "10.0 ms", "4.00 ms", "-60 % … -60 %", "cluster", "150 %"}, levels[2])
	require.Equal(t, "none", levels[3][5], "neither target had failures, so there must be no winner")
	require.Equal(t, []string{"cluster", "backend-2", "1,500", "33.33 %"}, table(v, "Responses by server").Rows[3])
	require.Equal(t, []string{"5 at a time, single", "3,000", "0", "100", "10.0", "good", "service"}, table(v, "Single").Rows[0])
}

func TestNoWinnerWithASaturatedGenerator(t *testing.T) {
	t.Parallel()
	v := judge(newComparisonRun(1500, 1530, 1470).setCores(.61, .97).addSeconds(0, 70, shard.Second{CPUSeconds: .97}))
	require.Contains(t, fact(v, "winner"), "no winner: the interval of the difference is +43 % … +58 %; the load generator was saturated while it tested the single backend (the service's cores were 61 % busy, the generator's 97 %)")
	require.Equal(t, "none", table(v, "Level by level").Rows[0][5])
	require.Contains(t, table(v, "Total: gains and costs").Rows[1][5], "generator")
}

// A stall of the generator in one of three rounds does not prevent a winner, but stalls in two rounds do.
func TestStallInOneRound(t *testing.T) {
	t.Parallel()
	winnerWithStalls := func(rounds ...int64) string {
		r := newComparisonRun(1500, 1530, 1470).setCores(.97, .61)
		for _, i := range rounds {
			r.addSeconds(22*i+3, 1, shard.Second{StallMS: 900})
		}
		return fact(judge(r), "winner")
	}
	require.Contains(t, winnerWithStalls(1), "winner: cluster")
	require.Contains(t, winnerWithStalls(0, 1), "the load generator was saturated while it tested the single backend (a runner stalled for 900 ms)")
}

// newOneRoundRun returns a comparison of one round without responses of the cluster.
func newOneRoundRun() *Run {
	return runOf("cluster", fixedParameters,
		shard.Stage{Name: "level-5-single", Title: "5 at a time, single", Kind: kindLoad, Target: single, Seconds: 10, Concurrency: 5, Requests: 1000},
		shard.Stage{Name: "level-5-cluster", Title: "5 at a time, cluster", Kind: kindLoad, Target: cluster, Start: 20, Seconds: 10, Concurrency: 5, Requests: 1500},
	).addAnswers("level-5-single", 1000, 10, shard.TagServer, "backend-1")
}

// The limit of a level of under two seconds is unknown.
func TestNoWinnerOfShortLevels(t *testing.T) {
	t.Parallel()
	r := newComparisonRun(1500, 1530, 1470)
	for i := range r.Rounds[0].Metrics {
		m := &r.Rounds[0].Metrics[i]
		m.LastUS = m.FirstUS + 1_900_000
	}
	for i := range r.Rounds[0].Suite.Stages {
		r.Rounds[0].Suite.Stages[i].Seconds = 1.9
	}
	v := judge(r)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Contains(t, fact(v, "deploy"), "neither has a provably higher throughput")
	require.Equal(t, "none", table(v, "Level by level").Rows[0][5])
	require.Contains(t, table(v, "Level by level").Rows[0][6], "not known")
	require.Equal(t, "not known", table(v, "Single").Rows[0][6])
	i := slices.IndexFunc(v.Checks, func(c verdict.Check) bool { return c.ID == verdict.CheckGenerator })
	require.Equal(t, "unknown at 2 of 2", v.Checks[i].Actual)
	require.False(t, v.Checks[i].Pass)
}

// respond adds 1,500 responses of the cluster, evenly divided among the servers with the given numbers.
func (r *Run) respond(servers ...int) *Run {
	for _, n := range servers {
		r.addAnswers("level-5-cluster", 1500/len(servers), 4, shard.TagServer, fmt.Sprint("backend-", n))
	}
	return r
}

func TestClusterFindsFaults(t *testing.T) {
	t.Parallel()
	setLowCount := func(r *Run) { // the samples have fewer requests than the runners
		r.respond(0, 1, 2)
		r.OneHost, r.Samples = true, []resources.Sample{{Unix: start.Unix(), Served: 10}, {Unix: start.Unix() + 40, Served: 2100}}
	}
	judgeEdits(t, newOneRoundRun, []runEdit{
		{"one server", func(r *Run) { r.respond(1) }, verdict.Fail, "only 1 of the 3 servers of the cluster answered (backend-1); check the load balancer, or CLUSTER_SIZE"},
		{"a server is down", func(r *Run) { r.respond(1, 3) }, verdict.Fail, "only 2 of the 3 servers of the cluster answered (backend-1, backend-3)"},
		{"a cluster of two", func(r *Run) { r.set("CLUSTER_SIZE", "2").respond(1, 3) }, verdict.Pass, "single 100 responses/s"},
		{"four servers", func(r *Run) { r.respond(0, 1, 2, 3) }, verdict.Invalid, "4 servers answered (backend-0, backend-1, backend-2, backend-3), but CLUSTER_SIZE is 3"},
		{"no names of servers", func(r *Run) { r.addAnswers("level-5-cluster", 1500, 4) }, verdict.Invalid, "no response of the cluster has the header X-Server, so it is unknown which servers answered"},
		{"the cluster refuses requests at the lowest load", func(r *Run) {
			r.respond(0, 1, 2).addAnswers("level-5-cluster", 1500, 1, shard.TagCode, "status-503")
		}, verdict.Fail, "cluster: the lowest load was not sustained: 50.00 % failed, mostly by status 503"},
		{"a server is silent at one level", func(r *Run) {
			stages := &r.Rounds[0].Suite.Stages
			*stages = append(*stages, shard.Stage{Name: "level-9-cluster", Kind: kindLoad, Target: cluster, Start: 40, Seconds: 10, Concurrency: 9, Requests: 300})
			r.respond(0, 1, 2).addAnswers("level-9-cluster", 150, 4, shard.TagServer, "backend-0").addAnswers("level-9-cluster", 150, 4, shard.TagServer, "backend-2")
		}, verdict.Fail, "backend-1 answered none of 300 requests to the cluster with 9 at a time"},
		{"the servers count fewer requests", setLowCount, verdict.Invalid, "2,100 requests reached the backends; the runners counted 2,500"},
		{"a crash resets the count of a server, and fails the run", func(r *Run) {
			setLowCount(r)
			r.Failures = []verdict.TargetFailure{{Text: "backend-2-cluster died at 10:00:00 UTC (signal: killed) and was restarted"}}
		}, verdict.Fail, "[backend-2-cluster died at 10:00:00 UTC (signal: killed) and was restarted]"},
	})
}

// The remaining servers share the load evenly, which must not hide the missing one.
func TestDeploymentWithAServerDown(t *testing.T) {
	t.Parallel()
	v := judge(newOneRoundRun().respond(1, 3))
	require.Contains(t, fact(v, "deploy"), "neither yet")
	require.Equal(t, []string{"least ÷ most busy", "–", "0.00 %", "–", "–", "–"}, table(v, "Total: gains and costs").Rows[3])
}

func TestShortList(t *testing.T) {
	t.Parallel()
	names := make([]string, 3000)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	require.Equal(t, "0, 1", shortList(names[:2]))
	require.Regexp(t, "18, 19 and 2,980 more$", shortList(names))
}
