package run

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/live"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/test/terminal"
)

func TestProgressHasALineForEachRunner(t *testing.T) {
	t.Parallel()
	f := &fullDisplay{watch: new(live.Watch), runners: []int{1, 2}, noun: "noop"}
	require.Equal(t, "runner 2   starting", f.line(2, time.Now()))
	h := shard.NewHistogram()
	h.Record(100 * time.Millisecond)
	f.watch.Add(2, &shard.Progress{
		Open: 600, Undecided: 3, Counts: ledger.Counts{Received: 7200, Lost: 2},
		Buckets: []shard.Bucket{{Unix: 5, ProcessUsage: shard.ProcessUsage{RSS: 80 << 20, CPUPercent: 12}}, {Unix: 10, Lateness: h.Pack()}},
	})
	require.Equal(t, "runner 2   600 open · 7200 noops · 2 missed · 3 undecided · late p99 100 ms  ▆ · 12% 80 MiB", f.line(2, time.Now()))
	require.Contains(t, f.line(2, time.Now().Add(time.Minute)), " · silent for 60 s")
	f.watch.Add(2, &shard.Progress{Requests: 1})
	require.Contains(t, f.line(2, time.Now()), "1 request · 0 failed")
	f.watch.Add(2, &shard.Progress{Counts: ledger.Counts{Received: 1}})
	f.watch.Add(2, nil)
	require.Contains(t, f.line(2, time.Now()), "0 open · 1 noop · ")
	require.Contains(t, f.line(2, time.Now()), " · ended")
}

func TestProgressInALogIsPlain(t *testing.T) {
	t.Parallel()
	out, watch := new(terminal.Output), new(live.Watch)
	d := &display{out: &console{out: out}, total: 6 * time.Second, started: time.Now(), line: func() string { return "4/4 open" }, full: &fullDisplay{watch: watch}}
	watch.Add(1, &shard.Progress{Found: []shard.FoundFault{{AtMS: 1000, ID: "soak-3", Text: "2 missed"}}, Unlisted: 7})
	watch.Note("action deploy starts") // the session prints a note itself
	ctx, stop := context.WithCancel(t.Context())
	var showing sync.WaitGroup
	showing.Go(func() { d.show(ctx) })
	first := regexp.MustCompile(`(?m)^00:0[1-9]/00:06 4/4 open$`) // the first line may be late on a busy machine
	require.Eventually(t, func() bool { return first.MatchString(out.String()) }, time.Minute, 10*time.Millisecond)
	stop()
	showing.Wait()
	require.NotContains(t, out.String(), "\x1b", "nothing must be redrawn")
	require.NotContains(t, out.String(), "deploy")
	require.Contains(t, out.String(), "00:00:01 runner 1, soak-3: 2 missed\n")
	require.Contains(t, out.String(), " and 7 more findings at the same moment\n")
}

func TestProgressOfAllRunners(t *testing.T) {
	t.Parallel()
	h := shard.NewHistogram()
	h.Record(100 * time.Millisecond)
	soak := shard.Progress{Open: 4, Counts: ledger.Counts{Received: 40, Lost: 2, Corrupted: 1}, Lateness: h.Pack(), Dropped: 3, Published: 7, Confirmed: 6}
	for name, c := range map[string]struct {
		progress shard.Progress
		want     string
	}{
		"soak":                {soak, "4/4 open · 40/60 noops · 2 missed · 3 dropped · 1 faulty noop · 6/7 confirmed · late p99 100 ms · backend 50% 16 MiB"},
		"churn":               {soak, "4 open · 40 noops · 2 missed · 0 late · 6/7 confirmed · backend 50% 16 MiB"},
		"churn with one noop": {shard.Progress{Counts: ledger.Counts{Received: 1}}, "0 open · 1 noop · 0 missed · 0 late · backend 50% 16 MiB"},
		"rampup":              {shard.Progress{Stage: "200/s", Requests: 9, Failed: 1}, "200/s · 9 requests · 1 failed · backend 50% 16 MiB"},
	} {
		s := &session{Config: testConfig("http://h"), watch: new(live.Watch)}
		s.chooseService()
		if name != "soak" {
			s.Suite = suiteOf(strings.Fields(name)[0])
		}
		s.watch.Add(1, &c.progress)
		require.Equal(t, c.want, s.progress(&meter{cpu: 50, last: resources.Sample{BackendRSS: 16 << 20}}), name)
	}
}

func TestReceivedMessages(t *testing.T) {
	t.Parallel()
	s := &session{service: shard.Service{CountBasis: shard.CountByInterval}}
	require.Equal(t, "40/300 messages", s.receivedText(40, 300))
	require.Equal(t, "302/302 messages", s.receivedText(302, 300), "the plan must not be less than the count, because a stream may receive one message more than planned")
	s.Plan.Topics, s.Plan.PublishRate = 1, 1
	require.Equal(t, "3 messages", s.receivedText(3, 9), "the plan must be omitted, because the publisher starts later than the streams")
	s.Plan, s.service = plan.Plan{}, shard.Service{Message: "noop"}
	require.Equal(t, "3 noops", s.receivedText(3, 9), "the plan must be omitted, because it is unknown")
}

func TestNarrowTerminalShowsCompleteParts(t *testing.T) {
	t.Parallel()
	const line = "00:03/00:15 20/20 open · 40/300 noops · 0 missed"
	require.Equal(t, line, fit(line, 80))
	require.Equal(t, "00:03/00:15 20/20 open · 40/300 noops", fit(line, 45))
	require.Equal(t, "00:03/00:15 20/20 open · 40/300 noops", fit(line, 38))
	require.Equal(t, "00:03/00:15 20/20 open", fit(line, 37))
	require.Equal(t, "00:03", fit(line, 6))
	require.Empty(t, fit(line, 0))
}

// A script limits the duration of its runners to a time in which all streams can end.
func TestProgressHasTheLengthOfTheDeclaredPlan(t *testing.T) {
	t.Parallel()
	s := session{Config: Config{Suite: suiteOf("churn")}, needs: runners.Requirements{Duration: 86 * time.Second, Seconds: 14}}
	declared := plan.Plan{Seconds: 14}
	require.Equal(t, declared.Hold(), s.duration(), "the verdict of a stopped run must have the same length")
	s.needs.Seconds = 0
	require.Equal(t, 86*time.Second, s.duration(), "a suite without streams must have the maximum duration of its runners")
	s = session{Config: Config{Suite: suite.Default(), Plan: declared}}
	require.Equal(t, declared.Hold(), s.duration())
}
