package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

const (
	bareScript      = "tools/bench/runner.js"
	soakScript      = "load-tests/sse/connectionTest.js"
	tlsScript       = "tools/bench/tls.js"
	handshakeScript = "load-tests/http/handshake.js"
	requestsScript  = "tools/bench/requests.js"
	serviceScript   = "tools/bench/service.js"
)

// A contender is one of the clients that a benchmark compares.
type contender struct {
	name    string // prefix of its metrics
	service service
	start   func(streams int) client
}

// soak returns a contender that runs a script of a soak in one virtual user. change, unless nil, adapts the plan.
func (s service) soak(name, script string, change func(*plan.Plan)) contender {
	return contender{name, s, func(n int) client { return s.run(script, n, n, change) }}
}

// compare measures the contenders one after the other, with few and with many streams. It reports the memory per stream
// and the CPU time per 1000 messages of each contender. It returns the CPU times, and the results with many streams, by
// name.
func compare(b *testing.B, streams int, contenders ...contender) (cpu map[string]float64, results map[string]cost) {
	cpu, results = map[string]float64{}, map[string]cost{}
	for _, c := range contenders {
		small, large := c.measure(size.few, max(size.window/2, 2*time.Second)), c.measure(streams, size.window)
		cpu[c.name], results[c.name] = large.per(1000), large
		b.ReportMetric((large.rss-small.rss)/float64(streams-size.few)/kb, c.name+"-KB")
		b.ReportMetric(large.per(1000), c.name+"-s")
	}
	b.ReportMetric(0, "ns/op")
	return cpu, results
}

// measure repeats an incomplete measurement up to two times, because the machine may have been saturated.
func (c contender) measure(streams int, window time.Duration) (result cost) {
	s := c.service
	var err error
	for range 3 {
		start := s.counts()
		client := c.start(streams)
		s.await(streams)
		time.Sleep(size.settle)
		result = s.measureWindow(client.pids(), window)
		if err = s.finish(client, start); err == nil || !errors.Is(err, errUnaccounted) {
			break
		}
	}
	require.NoError(s.b, err)
	return result
}

func BenchmarkRunner(b *testing.B) {
	for b.Loop() {
		s := backend(b, size.many, time.Second)
		cpu, many := compare(b, size.many,
			contender{"extension", s, func(n int) client { return s.run(bareScript, n, n, nil) }},
			s.soak("soak", soakScript, nil),
			contender{"raw", s, func(n int) client { return s.startBare(n, false) }},
			contender{"epoll", s, func(n int) client { return s.startBare(n, true) }})
		for name, c := range many {
			b.ReportMetric(c.rss/mb, name+"-MB")
		}
		b.ReportMetric(many["soak"].peak/many["soak"].rss, "soak-ramp/steady")
		b.ReportMetric(cpu["extension"]/cpu["raw"], "extension/raw")
		b.ReportMetric(cpu["soak"]/cpu["raw"], "soak/raw")
		b.ReportMetric(cpu["soak"]/cpu["epoll"], "soak/epoll")
		p := plan.Default()
		p.Connections, p.Runners = size.soak, 1
		runner := contender{"", s, func(n int) client { return s.run(soakScript, n, p.StreamsPerVU(), nil) }}
		b.ReportMetric(runner.measure(size.soak, max(size.window/2, 2*time.Second)).rss/mb, "soak-1200-MB")
	}
}

// BenchmarkMessages compares two kinds of messages with noops: JSON with a marker, a number, a time and a checksum, and
// messages without a number. All streams receive one message per second, at the same time.
func BenchmarkMessages(b *testing.B) {
	for b.Loop() {
		noops, messages, feed := backend(b, size.many, time.Second), backend(b, size.many, time.Hour), backend(b, size.many, time.Hour)
		feed.feed()
		cpu, _ := compare(b, size.many, noops.soak("noop", soakScript, nil), messages.soak("json", soakScript, func(p *plan.Plan) {
			p.Service, p.Topics, p.PublishRate, p.Marker = absolutePath(b, serviceScript), 1, 1, "bench-12345678"
		}), feed.soak("same", soakScript, func(p *plan.Plan) { p.Service = absolutePath(b, "tools/bench/same.js") }))
		b.ReportMetric(cpu["json"]/cpu["noop"], "json/noop")
		b.ReportMetric(cpu["same"]/cpu["noop"], "same/noop")
	}
}

func absolutePath(b *testing.B, path string) string {
	path, err := filepath.Abs(path)
	require.NoError(b, err)
	return path
}

func BenchmarkTLS(b *testing.B) {
	for b.Loop() {
		plain := backend(b, size.encrypted, time.Second)
		secure := startBackend(b, target.LocalConfig{
			Connections: size.encrypted, NoopInterval: time.Second, NoNginx: true, Certificates: target.Certificates(certificates(b)),
		})
		cpu, _ := compare(b, size.encrypted, secure.soak("tls", tlsScript, nil), plain.soak("plain", soakScript, nil))
		b.ReportMetric(cpu["tls"]/cpu["plain"], "tls/plain")
	}
}

// http2Service starts a noop service with HTTP/2 and HTTP/1.1, over TLS if certs is set. The service sends one noop per
// second to all streams at the same time.
func http2Service(b testing.TB, certs string) service {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	address := listener.Addr().String()
	require.NoError(b, listener.Close())
	startProgram(b, "http2-service", http2Options{Listen: address, Certs: certs, Interval: 1, Phase: fakeservice.PhaseWall})
	url := "http://" + address
	if certs != "" {
		_, port, _ := net.SplitHostPort(address)
		url = "https://localhost:" + port
	}
	targets, err := target.Remotes([]string{url}, "", target.Certificates(certs))
	require.NoError(b, err)
	s := service{Target: targets[0], b: b}
	if certs != "" {
		s.env = s.RunnerEnv(target.Certificates(certs))
		s.env["CONNECT_TO"] = "127.0.0.1"
	}
	require.NoError(b, s.Ready(b.Context()))
	return s
}

func BenchmarkHTTP2(b *testing.B) {
	for b.Loop() {
		plain, secure := http2Service(b, ""), http2Service(b, certificates(b))
		h1, h2 := func(p *plan.Plan) { p.HTTPVersion = "1.1" }, func(p *plan.Plan) { p.HTTPVersion = plan.HTTP2 }
		cpu, _ := compare(b, size.many, plain.soak("h2", soakScript, h2), plain.soak("h1", soakScript, h1),
			secure.soak("h2-tls", tlsScript, h2), secure.soak("h1-tls", tlsScript, h1))
		b.ReportMetric(cpu["h2"]/cpu["h1"], "h2/h1")
		b.ReportMetric(cpu["h2-tls"]/cpu["h1-tls"], "h2-tls/h1-tls")
	}
}

func BenchmarkHandshake(b *testing.B) {
	const workers = 16
	for b.Loop() {
		certs := certificates(b)
		s := startBackend(b, target.LocalConfig{Connections: 1, NoopInterval: time.Hour, NoNginx: true, Certificates: target.Certificates(certs)})
		k6 := 0.0
		for _, m := range s.script(handshakeScript, plan.Plan{Suite: "handshake"}, map[string]string{
			"CONNECTIONS": strconv.Itoa(size.handshakes), "WORKERS": strconv.Itoa(workers), "K6_SUMMARY_MODE": "disabled", "K6_NO_THRESHOLDS": "true",
		}, 5*time.Minute).Metrics {
			if m.Name == shard.RequestDuration && m.Tags[shard.TagCode] == shard.CodeOK && m.Count == int64(size.handshakes) {
				k6 = float64(m.Count) / (float64(m.LastUS-m.FirstUS) / 1e6)
			}
		}
		require.Positive(b, k6, "all handshakes must succeed")
		_, port, err := net.SplitHostPort(s.address())
		require.NoError(b, err)
		p, output := startProgram(b, "handshakes", handshakeOptions{
			Address: s.env["CONNECT_TO"] + ":" + port, Certs: certs, Connections: size.handshakes, Workers: workers,
		})
		loop := float64(size.handshakes) / awaitResult[float64](b, p, output, 5*time.Minute)
		b.ReportMetric(k6, "k6-handshakes/s")
		b.ReportMetric(loop, "go-handshakes/s")
		b.ReportMetric(loop/k6, "go/k6")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkRequests compares a closed loop of k6/x/requests with wrk, if wrk is installed.
func BenchmarkRequests(b *testing.B) {
	const concurrency = 50
	for b.Loop() {
		s := backend(b, 1, time.Hour)
		rate := 0.0
		report := s.script(requestsScript, plan.Plan{Suite: "throughput"}, map[string]string{
			"CONCURRENCY": strconv.Itoa(concurrency), "WINDOW": strconv.FormatFloat(size.window.Seconds(), 'f', -1, 64),
		}, size.window+time.Minute)
		for _, m := range report.Metrics {
			if m.Name == shard.RequestDuration {
				require.Equal(b, shard.CodeOK, m.Tags[shard.TagCode], "all requests must succeed")
				rate = float64(m.Count) / (float64(m.LastUS-m.FirstUS) / 1e6)
				b.ReportMetric(report.Runner.CPUSeconds*1e6/float64(m.Count), "k6-µs")
			}
		}
		b.ReportMetric(rate, "k6-responses/s")
		b.ReportMetric(0, "ns/op")
		if wrk, err := exec.LookPath("wrk"); err != nil {
			b.Log("wrk not measured: it is not installed; install the package wrk")
		} else {
			url := s.URL + "/default/services/calculator/math.multiply?a=9&b=22"
			out, err := exec.CommandContext(b.Context(), wrk, "-t1", fmt.Sprintf("-c%d", concurrency), fmt.Sprintf("-d%ds", int(size.window.Seconds())), url).Output()
			require.NoError(b, err)
			wrkResult, err := parseWrkRate(string(out))
			require.NoError(b, err)
			b.ReportMetric(wrkResult/rate, "wrk/k6")
		}
	}
}

var (
	wrkRate     = regexp.MustCompile(`(?m)^Requests/sec:\s+([0-9.]+)$`)
	wrkFailures = regexp.MustCompile(`(?m)^\s*(Non-2xx or 3xx responses: .*|Socket errors: .*)$`)
)

// parseWrkRate returns the rate in the output of wrk. Failed requests are an error, because wrk includes them in the
// rate.
func parseWrkRate(text string) (rate float64, err error) {
	if failure := wrkFailures.FindStringSubmatch(text); failure != nil {
		return 0, errors.New("requests of wrk failed: " + failure[1])
	}
	found := wrkRate.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("read the output of wrk: no rate in %q", text)
	}
	return strconv.ParseFloat(found[1], 64)
}

func BenchmarkBackend(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(0, "ns/op")
		backendPIDs := func() []int { return children(b, os.Getpid(), "backend") }
		hold := func(n int, interval, settle time.Duration) (s service, empty float64) {
			s = backend(b, n, interval)
			time.Sleep(2 * time.Second)
			empty = medianSum(b, backendPIDs(), rssOf)
			s.startBare(n, false)
			s.await(n)
			time.Sleep(settle)
			return s, empty
		}
		s, empty := hold(size.idle, time.Hour, size.idleSettle)
		b.ReportMetric((medianSum(b, backendPIDs(), rssOf)-empty)/float64(size.idle)/kb, "idle-KB")
		b.ReportMetric(empty/mb, "empty-MB")
		s.stop()

		s, _ = hold(size.busy, time.Second, size.settle)
		b.ReportMetric(s.measureWindow(backendPIDs(), size.window).per(1e6), "million-s")
		s.stop()

		s, _ = hold(size.broadcast, time.Second, 2*time.Second)
		c := s.measureWindow(backendPIDs(), size.window)
		rounds := c.to.rounds.GetSampleCount() - c.from.rounds.GetSampleCount()
		b.ReportMetric((c.to.rounds.GetSampleSum()-c.from.rounds.GetSampleSum())/float64(rounds)*1000, "broadcast-ms")
		s.stop()
	}
}

// BenchmarkFinite compares the suite finite with a Go client and other load generators on responses of 40 chunks. It
// also measures the memory per response in flight.
func BenchmarkFinite(b *testing.B) {
	const concurrency, few, many = 50, 100, 1500
	b.Setenv("MODEL_DELAY", "2ms")
	b.Setenv("MODEL_TTFT", "5ms")
	slow := filepath.Join(b.TempDir(), "prompts.ndjson")
	require.NoError(b, os.WriteFile(slow, []byte(`"soak id={id} chunks=5 delay=1s"`), 0o600))
	for b.Loop() {
		s := startBackend(b, target.LocalConfig{NoopInterval: time.Hour, NoNginx: true, Model: true})
		finite := func(responses int, prompts string) *shard.Shard {
			report := s.script("load-tests/sse/finite.js", plan.Plan{Suite: "finite"}, map[string]string{
				"CONCURRENCY": strconv.Itoa(responses), "SECONDS": strconv.FormatFloat(size.window.Seconds(), 'f', -1, 64), "PROMPTS": prompts,
			}, size.window+2*time.Minute)
			require.Equal(b, report.Responses.Ended(), report.Responses.States[ledger.ResponseComplete], report.Responses.Findings)
			require.Equal(b, report.Responses.Chunks.Expected, report.Responses.Chunks.Received)
			return report
		}
		p, output := startProgram(b, "responses", responsesOptions{URL: s.URL, Concurrency: concurrency, Duration: size.window})
		bare := awaitResult[responsesResult](b, p, output, size.window+time.Minute)
		soakShard := finite(concurrency, "")
		bareRate := float64(bare.Complete) / bare.CPUSeconds
		rate := float64(soakShard.Responses.Ended()) / soakShard.Runner.CPUSeconds
		b.ReportMetric(bareRate, "bare-responses/core-s")
		b.ReportMetric(rate, "finite-responses/core-s")
		b.ReportMetric(rate/bareRate, "finite/bare")
		measureFinitePeers(b, s.URL, concurrency)
		small, large := finite(few, slow).Runner.RSSMax, finite(many, slow).Runner.RSSMax
		b.ReportMetric(float64(large-small)/float64(many-few)/kb, "finite-KB")
		b.ReportMetric(0, "ns/op")
		s.stop()
	}
}

// BenchmarkChurn opens and ends streams as fast as possible while many other streams are open.
func BenchmarkChurn(b *testing.B) {
	const (
		spare      = 800    // streams that the backend accepts in addition to the open ones
		maxStreams = 20_000 // maximum number of streams per window, because the client's ports are limited
	)
	// By default, the backend reserves up to a quarter of its descriptors for other connections.
	b.Setenv("MAX_CONNECTIONS", strconv.Itoa(size.busy+spare))
	for b.Loop() {
		s := backend(b, size.busy+spare, 15*time.Second)
		openStreams := s.startBare(size.busy, false)
		s.await(size.busy)
		time.Sleep(size.settle)
		for _, ending := range []string{"reset", "delete"} {
			_, prefix := folder(b)
			cpu := sum(b, children(b, os.Getpid(), "backend"), cpuOf)
			p, output := startProgram(b, "churn", churnOptions{
				Address: s.address(), Prefix: prefix, Token: s.Token, Delete: ending == "delete", Duration: size.window, MaxStreams: maxStreams,
			})
			r := awaitResult[churnResult](b, p, output, size.window+time.Minute)
			end := time.Now()
			s.await(size.busy) // the backend may close the last streams later
			streams, seconds := float64(len(r.Connect)), r.Seconds+time.Since(end).Seconds()
			require.Empty(b, r.Errors)
			b.ReportMetric(streams/seconds, ending+"s/s")
			b.ReportMetric((sum(b, children(b, os.Getpid(), "backend"), cpuOf)-cpu)/streams*1e6, ending+"-µs")
			b.ReportMetric(quantile(r.Connect, .99), ending+"-connect-p99-ms")
			if ending == "delete" {
				b.ReportMetric(quantile(r.End, .99), "delete-p99-ms")
			}
		}
		_, missed := openStreams.end()
		require.Zero(b, missed, "the open streams must miss no noop")
		b.ReportMetric(0, "ns/op")
	}
}

// measureFinitePeers reports the responses per second of CPU of other load generators, including their start.
func measureFinitePeers(b *testing.B, url string, concurrency int) {
	b.Helper()
	report := func(metric string, cmd *exec.Cmd, count func() (responses float64)) {
		out, err := cmd.CombinedOutput()
		require.NoError(b, err, "%s", out)
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // includes its children
		b.ReportMetric(count()/cpu.Seconds(), metric)
	}
	dir, seconds := b.TempDir(), strconv.Itoa(int(size.window.Seconds()))
	summary := filepath.Join(dir, "k6.json")
	k6 := exec.CommandContext(b.Context(), "bin/k6", "run", "--quiet", "--vus", strconv.Itoa(concurrency), "--duration", seconds+"s",
		"--env", "MODEL_URL="+url, "--env", "SUMMARY="+summary, "tools/bench/responses.js")
	report("k6-http-responses/core-s", k6, func() float64 {
		var r struct{ Responses float64 }
		readJSON(b, summary, &r)
		return r.Responses
	})
	program, err := exec.LookPath("aiperf")
	tokenizer := os.Getenv("BENCH_TOKENIZER")
	if err != nil || tokenizer == "" {
		b.Log("aiperf not measured: it is not installed, or BENCH_TOKENIZER is not set; install aiperf from PyPI, and set BENCH_TOKENIZER")
		return
	}
	aiperf := exec.CommandContext(b.Context(), program, "profile", "--model", "m", "--url", url, "--endpoint-type", "chat", "--streaming",
		"--concurrency", strconv.Itoa(concurrency), "--benchmark-duration", seconds, "--tokenizer", tokenizer, "--ui", "none", "--output-artifact-dir", dir)
	report("aiperf-responses/core-s", aiperf, func() float64 {
		var r struct {
			Requests struct{ Avg float64 } `json:"request_count"`
		}
		readJSON(b, filepath.Join(dir, "profile_export_aiperf.json"), &r)
		return r.Requests.Avg
	})
}

func readJSON(b *testing.B, path string, value any) {
	b.Helper()
	text, err := os.ReadFile(path)
	require.NoError(b, err)
	require.NoError(b, json.Unmarshal(text, value))
}
