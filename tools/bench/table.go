package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/tools/page"
)

// A measurement is one row of the table.
type measurement struct {
	Section    string  `json:"section"`
	Name       string  `json:"name"`
	MeasuredAt string  `json:"measured"`
	Commit     string  `json:"commit,omitempty"`
	Machine    string  `json:"machine"`
	Unit       string  `json:"unit"`
	Value      float64 `json:"value"` // median of the repetitions
	Low        float64 `json:"low"`   // smallest value of the repetitions
	High       float64 `json:"high"`  // largest value of the repetitions
}

// A report is the stored form of the results of benchmarks. Benchmarks that were not run again keep their figures.
type report struct {
	RunInfo *page.RunInfo `json:"run_info"` // origin of the newest figures
	Figures []measurement `json:"figures"`
}

// writeTable reads the output of benchmarks, prints the page, and writes PATH.json and PATH.md. It returns an error if
// a benchmark failed or a figure is over its limit.
func writeTable(output io.Reader, path string) error {
	values, failure, err := parse(output)
	if err != nil {
		return err
	}
	if len(values) == 0 {
		return errors.New("read the benchmarks: no figure; run `make bench`")
	}
	var r report
	text, err := os.ReadFile(path + ".json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the earlier figures: %w", err)
	}
	info := page.ThisProgram(".")
	r.merge(values, info)
	return errors.Join(r.write(os.Stdout), page.Save(path, r, r.write), failure, overLimits(r.Figures))
}

// parse returns the values of each metric by "BENCHMARK METRIC". failure reports that a benchmark failed.
func parse(output io.Reader) (values map[string][]float64, failure, err error) {
	values = map[string][]float64{}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 0 && fields[0] == "FAIL" {
			failure = errors.New("a benchmark failed; see its output")
		}
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "-")
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				key := name + " " + fields[i+1]
				values[key] = append(values[key], v)
			}
		}
	}
	return values, failure, lines.Err()
}

// merge replaces measurements with new ones, and sorts them in the order of figures.
func (r *report) merge(values map[string][]float64, info *page.RunInfo) {
	var out []measurement
	machine := info.Machine.CPU + ", " + format.Count(info.Machine.Cores, "core")
	for _, f := range figures {
		if repetitions := values[f.Benchmark+" "+f.Metric]; repetitions != nil {
			out = append(out, measurement{
				Section: f.Section, Name: f.Name, MeasuredAt: time.Now().UTC().Format("2006-01-02 15:04 UTC"), Commit: info.Commit, Machine: machine,
				Unit: f.Unit, Value: resources.Median(slices.Clone(repetitions)), Low: slices.Min(repetitions), High: slices.Max(repetitions),
			})
		} else if i := slices.IndexFunc(r.Figures, f.matches); i >= 0 {
			out = append(out, r.Figures[i])
		}
	}
	r.RunInfo, r.Figures = info, out
}

func (f figure) matches(m measurement) bool { return f.Section == m.Section && f.Name == m.Name }

func (m measurement) definition() figure {
	return figures[slices.IndexFunc(figures, func(f figure) bool { return f.matches(m) })]
}

func overLimits(rows []measurement) (err error) {
	for _, m := range rows {
		if f := m.definition(); f.Limit > 0 && m.Value > f.Limit {
			err = errors.Join(err, fmt.Errorf("%s, %s is %s %s, over the limit of %s", m.Section, m.Name, short(m.Value), m.Unit, short(f.Limit)))
		}
	}
	return err
}

func (r *report) write(w io.Writer) error {
	fmt.Fprint(w, "# Cost of a soak\n\nWritten by `make bench`.\n")
	for remaining := r.Figures; len(remaining) > 0; {
		first, rows := remaining[0], [][]string(nil)
		for len(remaining) > 0 && remaining[0].Section == first.Section {
			rows, remaining = append(rows, remaining[0].row()), remaining[1:]
		}
		fmt.Fprintf(w, "\n## %s%s\n\nMeasured %s, commit %s, %s.\n\n", strings.ToUpper(first.Section[:1]), first.Section[1:],
			first.MeasuredAt, cmp.Or(first.Commit, "unknown"), first.Machine)
		page.Table(w, []string{"figure", "ours", "limit", "", "peers"}, rows)
	}
	fmt.Fprint(w, "\n## Definitions\n\n")
	for _, m := range r.Figures {
		fmt.Fprintf(w, "- **%s, %s**: %s\n", m.Section, m.Name, m.definition().Definition)
	}
	fmt.Fprintln(w, "\nBrackets contain the smallest and the largest value of the repetitions. Each stream receives one message per second. The\n"+
		"clients of a benchmark run one after the other. The figures of peers were measured earlier, on a machine of the same kind.\n"+
		"KB is 1024 bytes.")
	return page.WriteRunInfo(w, r.RunInfo)
}

func (m measurement) row() []string {
	f, limit, result := m.definition(), " ", " "
	if f.Limit > 0 {
		limit, result = short(f.Limit), "PASS"
		if m.Value > f.Limit {
			result = "OVER"
		}
	}
	return []string{m.Name, m.text(), limit, result, cmp.Or(f.Peers, " ")}
}

func (m measurement) text() string {
	s := short(m.Value)
	if m.Low != m.High {
		s += " (" + short(m.Low) + "…" + short(m.High) + ")"
	}
	return s + " " + m.Unit
}

// short formats a number with three significant digits, or with all digits before the point.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1:
		return strconv.FormatFloat(v, 'f', max(2-int(math.Log10(a)), 0), 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// A figure is one value that a benchmark measures, with its names in the output of the benchmark and on the page.
type figure struct {
	Benchmark, Metric   string
	Section, Name, Unit string
	Limit               float64 // 0: no limit
	Peers               string  // values of other programs in the same unit, from an earlier measurement
	Definition          string
}

const (
	perStream = "median RSS with all streams minus median RSS with few, divided by the difference in streams"
	perNoops  = "user and system CPU in the steady state, divided by the messages sent in this time"
	ratio     = "median of the ratio within a round"
	peersKB   = "k6 + xk6-sse 225, k6 asyncRequest 81–204, Locust 27, Gatling 8–50, net/http 32, raw in a k6 VU 7.6, raw 7.1, one epoll loop 0.3"
	peersCPU  = "k6 + xk6-sse 0.061, k6 asyncRequest 0.022, Locust 0.037, Gatling 0.038–0.060, net/http 0.021, raw in a k6 VU 0.018, raw 0.020, one epoll loop 0.012"
)

// figures lists all figures in the order of the page. The runner and a merge need no further optimization while
// their figures are within the limits.
var figures = []figure{
	{"Runner", "extension-KB", "runner", "extension, RSS per connection", "KB", 12, peersKB, "k6 with 1 VU running tools/bench/runner.js (EventSource and Ledger): " + perStream},
	{"Runner", "extension-MB", "runner", "extension, RSS at 5000", "MB", 0, "", "the whole process in the steady state"},
	{"Runner", "soak-KB", "runner", "soak script, RSS per connection", "KB", 3, "", "k6 with 1 VU running load-tests/sse/connectionTest.js: " + perStream},
	{"Runner", "soak-MB", "runner", "soak script, RSS at 5000", "MB", 0, "", "the whole process in the steady state"},
	{"Runner", "raw-KB", "runner", "raw client, RSS per connection", "KB", 0, "7.1", "a Go client with one goroutine and 512 bytes per connection: " + perStream},
	{"Runner", "raw-MB", "runner", "raw client, RSS at 5000", "MB", 0, "", "the whole process in the steady state"},
	{"Runner", "epoll-KB", "runner", "epoll client, RSS per connection", "KB", 0, "0.3", "one epoll loop that counts noops: " + perStream},
	{"Runner", "epoll-MB", "runner", "epoll client, RSS at 5000", "MB", 0, "", "the whole process in the steady state"},
	{"Runner", "extension-s", "runner", "extension, CPU-s per 1000 noops", "s", 0, peersCPU, perNoops},
	{"Runner", "soak-s", "runner", "soak script, CPU-s per 1000 noops", "s", 0, "", perNoops},
	{"Runner", "raw-s", "runner", "raw client, CPU-s per 1000 noops", "s", 0, "0.020", perNoops},
	{"Runner", "epoll-s", "runner", "epoll client, CPU-s per 1000 noops", "s", 0, "0.012", perNoops},
	{"Runner", "soak-ramp/steady", "runner", "soak script, RSS of the ramp against the steady state", "×", 0, "", "largest RSS of the process (VmHWM), divided by its median in the steady state"},
	{"Runner", "extension/raw", "runner", "extension, CPU against raw client", "×", 0, "", ratio},
	{"Runner", "soak/raw", "runner", "soak script, CPU against raw client", "×", 0, "", ratio},
	{"Runner", "soak/epoll", "runner", "soak script, CPU against epoll client", "×", 1.6, "", ratio},
	{"Runner", "soak-1200-MB", "runner", "soak script, RSS of a runner with 1200", "MB", 60, "", "median RSS of k6 with the number of connections per VU that `make soak` plans"},

	{"Messages", "noop-KB", "messages", "noop, RSS per connection", "KB", 0, "", perStream},
	{"Messages", "json-KB", "messages", "JSON of 100 bytes, RSS per connection", "KB", 0, "", "with SERVICE tools/bench/service.js, which publishes one message per second: " + perStream},
	{"Messages", "noop-s", "messages", "noop, CPU-s per 1000 noops", "s", 0, "", perNoops},
	{"Messages", "json-s", "messages", "JSON of 100 bytes, CPU-s per 1000 messages", "s", 0, "", perNoops},
	{"Messages", "json/noop", "messages", "JSON of 100 bytes, CPU against noop", "×", 2, "", ratio},
	{"Messages", "same-KB", "messages", "no number, 100 bytes, RSS per connection", "KB", 0, "", "with SERVICE tools/bench/same.js, which compares clients with each other: " + perStream},
	{"Messages", "same-s", "messages", "no number, 100 bytes, CPU-s per 1000 messages", "s", 0, "", perNoops},
	{"Messages", "same/noop", "messages", "no number, 100 bytes, CPU against noop", "×", 1.3, "", ratio},

	{"Finite", "bare-responses/core-s", "finite", "Go client, responses of 40 chunks per second of CPU", "/s", 0, "", "net/http and a scanner that looks for the terminal event, 50 at a time"},
	{"Finite", "finite-responses/core-s", "finite", "soak run finite, responses of 40 chunks per second of CPU", "/s", 0, "", "one runner including the start of k6, 50 at a time; the ledger counts each chunk"},
	{"Finite", "finite/bare", "finite", "soak run finite against the Go client", "×", 0, "", "responses per second of CPU, divided within a round"},
	{"Finite", "k6-http-responses/core-s", "finite", "k6/http, responses of 40 chunks per second of CPU", "/s", 0, "", "50 virtual users including the start of k6; whole bodies without checks"},
	{"Finite", "aiperf-responses/core-s", "finite", "aiperf, responses of 40 chunks per second of CPU", "/s", 0, "", "aiperf of PyPI including its start, 50 at a time; measured only if it is installed and BENCH_TOKENIZER names a tokenizer"},
	{"Finite", "finite-KB", "finite", "soak run finite, RSS per response in flight", "KB", 12, "", "largest RSS with 1500 responses at a time minus largest RSS with 100, divided by the difference"},

	{"TLS", "tls-KB", "tls", "TLS 1.3, RSS per connection", "KB", 9, "", "tools/bench/tls.js, the soak script with a client certificate: " + perStream},
	{"TLS", "plain-KB", "tls", "plain, RSS per connection", "KB", 0, "", perStream},
	{"TLS", "tls-s", "tls", "TLS 1.3, CPU-s per 1000 noops", "s", 0, "", perNoops},
	{"TLS", "plain-s", "tls", "plain, CPU-s per 1000 noops", "s", 0, "", perNoops},
	{"TLS", "tls/plain", "tls", "TLS 1.3, CPU against plain", "×", 0, "", ratio},

	{"HTTP2", "h2-KB", "http2", "HTTP/2, RSS per connection", "KB", 2, "", "RSS per stream of the soak script: " + perStream},
	{"HTTP2", "h1-KB", "http2", "HTTP/1.1, RSS per connection", "KB", 0, "", perStream},
	{"HTTP2", "h2-tls-KB", "http2", "HTTP/2 over TLS, RSS per connection", "KB", 2, "", perStream},
	{"HTTP2", "h1-tls-KB", "http2", "HTTP/1.1 over TLS, RSS per connection", "KB", 0, "", perStream},
	{"HTTP2", "h2-s", "http2", "HTTP/2, CPU-s per 1000 noops", "s", 0, "", perNoops},
	{"HTTP2", "h1-s", "http2", "HTTP/1.1, CPU-s per 1000 noops", "s", 0, "", perNoops},
	{"HTTP2", "h2-tls-s", "http2", "HTTP/2 over TLS, CPU-s per 1000 noops", "s", 0, "", perNoops},
	{"HTTP2", "h1-tls-s", "http2", "HTTP/1.1 over TLS, CPU-s per 1000 noops", "s", 0, "", perNoops},
	{"HTTP2", "h2/h1", "http2", "HTTP/2, CPU against HTTP/1.1", "×", 0, "", ratio},
	{"HTTP2", "h2-tls/h1-tls", "http2", "HTTP/2 over TLS, CPU against HTTP/1.1 over TLS", "×", 0, "", ratio},

	{"Handshake", "k6-handshakes/s", "handshake", "k6/x/handshake, handshakes per second", "1/s", 0, "", "load-tests/http/handshake.js with 16 virtual users: TCP, a full TLS 1.3 handshake with a client certificate, one response"},
	{"Handshake", "go-handshakes/s", "handshake", "bare Go loop, handshakes per second", "1/s", 0, "", "the same requests by net/http, one goroutine per worker"},
	{"Handshake", "go/k6", "handshake", "bare Go loop against k6/x/handshake", "×", 1.25, "", ratio},

	{"Requests", "k6-responses/s", "requests", "k6/x/requests, responses per second", "1/s", 0, "", "tools/bench/requests.js: 50 at a time, one operation of the backend"},
	{"Requests", "k6-µs", "requests", "k6/x/requests, CPU per request", "µs", 25, "k6/http with a check in JavaScript 381", "all CPU of the k6 process, divided by the requests"},
	{"Requests", "wrk/k6", "requests", "wrk -t1 against k6/x/requests", "×", 2.5, "", "responses per second of wrk -t1 -c50 on the same URL, divided by the rate of k6"},

	{"Backend", "idle-KB", "backend", "RSS per idle connection", "KB", 3, "net/http with a ticker 27, go-sse 23, nchan 14, Mercure 61–76, Centrifugo 60, hijacked net.Conn 2.0, bare descriptor 0.6", "RSS of the backend minus its RSS without connections, divided by the connections; no noops"},
	{"Backend", "empty-MB", "backend", "RSS empty", "MB", 0, "", "RSS of the backend without connections, 2 s after its start"},
	{"Backend", "million-s", "backend", "CPU-s per million noops", "s", 12, "net/http 21, go-sse 18, nchan 28", "user and system CPU of the backend with 15000 connections and one noop per second on each"},
	{"Backend", "broadcast-ms", "backend", "first to last write of one noop, mean", "ms", 50, "", "backend_broadcast_duration_seconds with 5000 connections"},

	{"Churn", "resets/s", "churn", "connect and hang up", "/s", 0, "", "streams opened and reset per second, 50 at a time, in addition to 15000 open streams, until the backend has closed the last one"},
	{"Churn", "reset-µs", "churn", "connect and hang up, backend's CPU each", "µs", 0, "", "user and system CPU of the backend, divided by the streams"},
	{"Churn", "reset-connect-p99-ms", "churn", "connect and hang up, p99 of the connect", "ms", 0, "", "time from the connect to the response headers, measured by the client"},
	{"Churn", "deletes/s", "churn", "connect and DELETE", "/s", 0, "", "the same, but a DELETE on another connection ends each stream, and the client reads it to its end"},
	{"Churn", "delete-µs", "churn", "connect and DELETE, backend's CPU each", "µs", 0, "", "user and system CPU of the backend, divided by the streams"},
	{"Churn", "delete-connect-p99-ms", "churn", "connect and DELETE, p99 of the connect", "ms", 0, "", "time from the connect to the response headers, measured by the client"},
	{"Churn", "delete-p99-ms", "churn", "connect and DELETE, p99 of the DELETE", "ms", 0, "", "time to the end of its response, measured by the client"},

	{"Nginx", "pss-KB", "nginx", "PSS per connection", "KB", 12, "with nginx's defaults 17.8", "proportional set size of master and workers with the configuration of a soak, divided by the streams"},
	{"Nginx", "rss-KB", "nginx", "RSS per connection", "KB", 0, "", "the same for RSS, which counts shared pages once per worker"},

	{"Growth", "RSS-MB/h", "growth", "growth of RSS", "MB/h", 1, "", "slope of the RSS of a runner with 1200 connections after a settling time; lowest value of every 2 minutes"},

	{"Merge", "wall-s", "merge", "merge, wall time", "s", 15, "", "`soak merge` of 1000 shards of an hour with 1000 ledgers each, all reports included"},
	{"Merge", "cpu-s", "merge", "merge, CPU", "s", 0, "", "user and system time of the same merge"},
	{"Merge", "RSS-MB", "merge", "merge, largest RSS", "MB", 700, "", "largest RSS of the same merge"},

	{"Days", "wall-s", "days", "merge of 72 hours, wall time", "s", 15, "", "`soak merge` of 2 shards of 72 hours with 600 ledgers each, all reports included"},
	{"Days", "RSS-MB", "days", "merge of 72 hours, largest RSS", "MB", 500, "", "largest RSS of the same merge"},
	{"Days", "shard-MB", "days", "a shard of 72 hours", "MB", 10, "", "size of the file of a runner with 600 streams"},
	{"Days", "page-MB", "days", "report.html of 72 hours", "MB", 2, "", "size of the report of both shards"},
}
