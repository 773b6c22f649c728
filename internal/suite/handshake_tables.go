package suite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// causes are those of k6/x/handshake, in words.
var causes = map[string]string{
	"interrupted": "interrupted", "dns": "name lookup failed", "refused": "connection refused", "unreachable": "no route",
	"tcp_timeout": "no TCP connection in time", "tcp_reset": "reset while connecting", "no_ports": "no ephemeral port left on this host",
	"no_descriptors": "no file descriptor left in the runner", "server_certificate": "the server's certificate is not trusted",
	"client_certificate": "the server refused the client's certificate", "tls_alert": "the server broke the handshake off",
	"tls_timeout": "no TLS in time", "tls_reset": "the server hung up during TLS", "tls": "the server speaks no TLS",
	"resumed": "the session was resumed", "answer_timeout": "no answer in time", "answer_reset": "hung up before the answer",
	"status": "an error status", "answer": "no HTTP answer",
}

// dominant is the cause of most failures.
func dominant(q *Requests) string {
	codes := causesByCount(q)
	if len(codes) == 0 {
		return "none failed"
	}
	return fmt.Sprintf("%s (%s of %s failed)", inWords(codes[0]), whole(q.Codes[codes[0]]), whole(q.Failed.Count()))
}

func causesByCount(q *Requests) []string {
	return slices.SortedFunc(maps.Keys(q.Codes), func(a, b string) int {
		return cmp.Or(cmp.Compare(q.Codes[b], q.Codes[a]), cmp.Compare(a, b))
	})
}

func inWords(cause string) string {
	if text, ok := causes[cause]; ok {
		return text
	}
	return cause
}

func causeTable(q *Requests) (t verdict.Table, any bool) {
	t = verdict.Table{Title: "Why connections failed", Columns: []string{"cause", "what", "connections", "of failed", "of all"}}
	for _, code := range causesByCount(q) {
		n := q.Codes[code]
		t.Rows = append(t.Rows, []string{code, inWords(code), whole(n), percentOf(share(n, q.Failed.Count())), percentOf(share(n, q.Total()))})
	}
	return t, len(t.Rows) > 0
}

// mostOpen is the most connections that were open at a time, in one runner.
func mostOpen(m *shard.Merged) (most float64) {
	for _, metric := range m.Metrics {
		if metric.Name == "handshake_open" {
			most = max(most, metric.Max)
		}
	}
	return most
}

func scaleTable(m *shard.Merged, stages []StageResult) verdict.Table {
	t := verdict.Table{
		Title:   "Scales",
		Note:    "CPU: of the runners and of the server for one connection, both ends on this machine",
		Columns: []string{"connections", "good", "per second", "whole mean ms", "p50", "p99", "peak open", "runner CPU ms", "server CPU ms"},
	}
	open := sumsByStage(m, "handshake_open")
	for _, st := range stages {
		perConnection := func(percent float64) string {
			if st.PerSecond() == 0 || percent == 0 { // shorter than a sample
				return "–"
			}
			return figure(10 * percent / st.PerSecond())
		}
		t.Rows = append(t.Rows, []string{
			whole(st.Total()), percentOf(1 - st.FailedShare()), count(st.PerSecond()), figure(st.Mean()), figure(quantile(st.OK, .5)), figure(quantile(st.OK, .99)),
			whole(int64(open[st.Name].Max)), perConnection(st.Machine.Runners), perConnection(st.Machine.Backend),
		})
	}
	return t
}

// phaseTable keeps the phases of a connection apart.
func phaseTable(m *shard.Merged, stages []StageResult) verdict.Table {
	t := verdict.Table{Title: "Phases, ms", Columns: []string{"connections", "phase", "n", "mean", "p50", "p99", "max"}}
	for _, st := range stages {
		for _, phase := range []string{"tcp", "tls", "answer"} {
			metric := sumsByStage(m, "handshake_"+phase)[st.Name]
			if metric.Count == 0 {
				continue
			}
			name := map[string]string{"tcp": "TCP handshake", "tls": "TLS handshake", "answer": "first answer"}[phase]
			if phase == "answer" && st.Kind == "held" {
				name = "answer"
			}
			t.Rows = append(t.Rows, []string{
				st.Title, name, whole(metric.Count), figure(metric.Sum / float64(metric.Count)), trend(metric, .5), trend(metric, .99), trend(metric, 1),
			})
		}
	}
	return t
}
