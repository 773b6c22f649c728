package suite

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
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
	if len(q.Codes) == 0 {
		return "none failed"
	}
	first := q.codesByCount()[0]
	return fmt.Sprintf("%s (%s of %s failed)", inWords(first), format.Thousands(q.Codes[first]), format.Thousands(q.Failed.Count()))
}

func inWords(cause string) string {
	if text, ok := causes[cause]; ok {
		return text
	}
	return cause
}

// peakOpen says how many connections were open at a time. Each runner knows of its own.
func peakOpen(m *shard.Merged, stages []StageResult) string {
	text := count(mostOpen(m, stages)) + " connections open at a time"
	if len(m.Runners) > 1 {
		text += fmt.Sprintf(" in one of %d runners", len(m.Runners))
	}
	return text
}

// mostOpen is the most connections that were open at a time, in one runner.
func mostOpen(m *shard.Merged, stages []StageResult) (most float64) {
	open := sumsByStage(m, "handshake_open")
	for _, st := range stages {
		most = max(most, open[st.Name].Max)
	}
	return most
}

func scaleTable(m *shard.Merged, stages []StageResult) verdict.Table {
	t := verdict.Table{
		Title:   "Scales",
		Note:    "CPU: of the runners and of the server for one connection, both ends on this machine; peak open: at a time, in one runner",
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
		t.Add(format.Thousands(st.Total()), percentOf(1-st.FailedShare()), count(st.PerSecond()), figure(st.Mean()), figure(quantile(st.OK, .5)), figure(quantile(st.OK, .99)),
			count(open[st.Name].Max), perConnection(st.Machine.Runners), perConnection(st.Machine.Backend))
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
			t.Add(append([]string{st.Title, name, format.Thousands(metric.Count), figure(metric.Sum / float64(metric.Count))}, quantiles(metric.Trend, .5, .99, 1)...)...)
		}
	}
	return t
}

// bytesTable is what went over the wire.
func bytesTable(m *shard.Merged, stages []StageResult) verdict.Table {
	t := verdict.Table{
		Title: "Bytes",
		Note: "on the wire as the runners saw it: records of TLS, without the headers of TCP and IP; each: over all connections, with their requests and answers; " +
			"handshake: of completed handshakes; expected: the good connections times the bytes of a connection made alone before the load",
		Columns: []string{"connections", "sent", "received", "expected", "of it", "sent each", "received each", "sent by a handshake", "received by a handshake"},
	}
	sent, received := sumsByStage(m, "handshake_sent"), sumsByStage(m, "handshake_received")
	tlsSent, tlsReceived := sumsByStage(m, "handshake_tls_sent"), sumsByStage(m, "handshake_tls_received")
	each := func(sum float64, n int64) string {
		if n == 0 {
			return "–"
		}
		return fmt.Sprintf("%.0f", sum/float64(n))
	}
	alone := received["alone"]
	for _, st := range stages {
		out, in := sent[st.Name], received[st.Name]
		if out.Count == 0 {
			continue
		}
		expected, share := "–", "–"
		if alone.Count > 0 && st.OK.Count() > 0 && st.Kind != "held" { // held ones receive more answers
			bytes := alone.Sum / float64(alone.Count) * float64(st.OK.Count())
			expected, share = format.Bytes(uint64(bytes)), fmt.Sprintf("%.2f %%", 100*in.Sum/bytes)
		}
		t.Add(format.Thousands(st.Total()), format.Bytes(uint64(out.Sum)), format.Bytes(uint64(in.Sum)), expected, share, each(out.Sum, st.Total()), each(in.Sum, st.Total()),
			each(tlsSent[st.Name].Sum, tlsSent[st.Name].Count), each(tlsReceived[st.Name].Sum, tlsReceived[st.Name].Count))
	}
	return t
}
