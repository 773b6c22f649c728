package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// The limits of issue 20: at least 0.4 of the answers that one thread of wrk gets, for at most 25 µs of CPU each.
const (
	requestsScript = "tools/bench/requests.js"
	requestsPath   = "/default/services/calculator/math.multiply?a=9&b=22"
	atATime        = 50

	limitWrk        = 1 / .4
	limitRequestCPU = 25

	// docs/results/http-suites.md, before requests were made in Go.
	peersRequestCPU = "k6/http with a check in JavaScript 381"
)

// measureRequests compares the closed loop of k6/x/requests with wrk, on the same backend, interleaved. Without wrk it says so,
// and measures the loop alone.
func (b *bench) measureRequests() []Metric {
	wrk, missing := exec.LookPath("wrk")
	if missing != nil {
		b.say("  wrk is not installed (Debian: apt install wrk): the requests of k6 are compared with nothing")
	}
	s := b.startService(1, time.Hour, false)
	defer s.stop()
	var ours, cpu, its, ratio []float64
	for round := range b.rounds {
		rate, each := s.requests(atATime, b.window)
		ours, cpu = append(ours, rate), append(cpu, each)
		if missing != nil {
			continue
		}
		yardstick := s.wrk(wrk, atATime, b.window)
		its, ratio = append(its, yardstick), append(ratio, yardstick/rate)
		b.say("  round %d of %d: %.0f/s by k6, %.0f/s by wrk", round+1, b.rounds, rate, yardstick)
	}
	out := []Metric{
		metric("k6/x/requests, answers per second", "1/s", ours...).means(
			"right answers by k6 running %s: %d at a time for %v, one operation of the backend, without nginx, on the same cores; median over %d rounds",
			requestsScript, atATime, b.window, b.rounds),
		metric("k6/x/requests, CPU per request", "µs", cpu...).limited(limitRequestCPU).peers(peersRequestCPU).means(
			"all CPU of the k6 process, its start, its samples, a threshold and the shard included, ÷ requests"),
	}
	if missing != nil {
		return out
	}
	out[0] = out[0].peers(fmt.Sprintf("wrk -t1 in the same run %.0f", median(its)))
	return append(out, metric("wrk -t1 against k6/x/requests", "×", ratio...).limited(limitWrk).means(
		"answers per second of wrk -t1 -c%d -d%v on the same URL ÷ those of k6; median over %d rounds of the ratio within a round", atATime, b.window, b.rounds))
}

// requests is how many right answers per second k6 gets, and the microseconds of CPU that each request takes.
func (s service) requests(concurrency int, window time.Duration) (rate, cpu float64) {
	dir := s.folder("requests")
	group := must(runners.Start(runners.Config{
		K6: "bin/k6", Script: requestsScript, Plan: plan.Plan{Suite: "throughput", TestID: "bench", Runners: 1, BackendURL: s.URL}, Dir: dir,
		Env: map[string]string{"CONCURRENCY": strconv.Itoa(concurrency), "WINDOW": strconv.FormatFloat(window.Seconds(), 'f', -1, 64)},
	}))
	ctx, stop := context.WithTimeout(s.ctx, window+time.Minute)
	defer stop()
	check(group.Wait(ctx, ctx))
	report := (&runner{shards: filepath.Join(dir, "shards")}).shard()
	for _, m := range report.Metrics {
		if m.Name != shard.RequestDuration {
			continue
		}
		if code := m.Tags[shard.TagCode]; code != shard.CodeOK {
			check(fmt.Errorf("%d requests of k6 failed: %s", m.Count, code))
		}
		rate = float64(m.Count) / (float64(m.LastUS-m.FirstUS) / 1e6)
		cpu = report.Runner.CPUSeconds * 1e6 / float64(m.Count)
	}
	if rate == 0 {
		check(errors.New("k6 made no request"))
	}
	return rate, cpu
}

var (
	wrkRate   = regexp.MustCompile(`(?m)^Requests/sec:\s+([0-9.]+)$`)
	wrkFailed = regexp.MustCompile(`(?m)^\s*(Non-2xx or 3xx responses: .*|Socket errors: .*)$`)
)

// wrk is how many answers per second one thread of it gets.
func (s service) wrk(program string, concurrency int, window time.Duration) float64 {
	out := must(exec.CommandContext(s.ctx, program, "-t1", fmt.Sprintf("-c%d", concurrency), fmt.Sprintf("-d%ds", int(window.Seconds())), s.URL+requestsPath).Output())
	return must(wrkSaid(string(out)))
}

// wrkSaid reads what wrk writes. A rate with failures in it is none.
func wrkSaid(text string) (rate float64, err error) {
	if failed := wrkFailed.FindStringSubmatch(text); failed != nil {
		return 0, errors.New("requests of wrk failed: " + failed[1])
	}
	found := wrkRate.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("wrk names no rate: %q", text)
	}
	return strconv.ParseFloat(found[1], 64)
}
