package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// ConnectionsCSV writes a row for each connection, with all its findings.
func ConnectionsCSV(w io.Writer, m *shard.Merged, v *verdict.Verdict) error {
	out := csv.NewWriter(w)
	head := []any{"id", "runner", "state", "reason", "opened_unix_s", "closed_unix_s", "connect_ms", "held_s", "streams"}
	for _, n := range (ledger.Totals{}).Each() {
		head = append(head, n.Name)
	}
	head = append(head,
		"max_gap_ms", "max_lateness_ms", "reconnects", "findings", "open_s", "away_s", "longest_outage_s", "attempts", "refused_attempts",
	)
	head = append(head, messageHead...)
	row(out, head...)
	words := verdict.WordsOf(m)
	for c := range v.Records() {
		runner := m.Runners[c.Runner]
		var findings []string
		for _, f := range c.Findings {
			findings = append(findings, words.Sentence(c, f, runner.At(f.At)))
		}
		if c.Unlisted > 0 {
			findings = append(findings, fmt.Sprintf("and %d more", c.Unlisted))
		}
		values := []any{
			cell(c.ID), runner.Index, cell(string(c.State)), cell(c.Reason),
			stamp(c.Streams > 0, runner.At(c.OpenedAt)), stamp(c.ClosedAt > 0, runner.At(c.ClosedAt)),
			decimals(c.Connect, time.Millisecond), decimals(c.Held, time.Second), c.Streams,
		}
		for _, n := range c.Totals().Each() {
			values = append(values, n.Count)
		}
		values = append(values,
			decimals(c.MaxGap, time.Millisecond), decimals(c.MaxLateness, time.Millisecond),
			outages(c, runner), cell(strings.Join(findings, "; ")),
			decimals(c.Open, time.Second), decimals(c.Away, time.Second), decimals(c.Longest.To-c.Longest.From, time.Second),
			c.Attempts, cell(attempts(c)),
		)
		values = append(values, messageCells(m, c)...)
		row(out, values...)
	}
	out.Flush()
	return out.Error()
}

// cell keeps a spreadsheet from taking text for a formula (CWE-1236).
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(text)[0]) {
		return "'" + text
	}
	return text
}

// outages lists when a client was cut off and for how long.
func outages(c *shard.Connection, r shard.Runner) string {
	var out []string
	for _, o := range c.Outages {
		out = append(out, fmt.Sprintf("%s for %s", r.At(o.From).UTC().Format("15:04:05.000"), (o.To-o.From).Round(time.Millisecond)))
	}
	if more := c.Survived - len(c.Outages); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "; ")
}

// attempts lists the attempts that failed by reason.
func attempts(c *shard.Connection) string {
	var out []string
	for _, f := range c.Refusals {
		out = append(out, fmt.Sprintf("%s: %d", f.Reason, f.Count))
	}
	return strings.Join(out, "; ")
}

// SeriesCSV writes a row for each bucket of five seconds: what the clients saw, and what the
// processes took at that time.
func SeriesCSV(w io.Writer, m *shard.Merged, samples []resources.Sample) error {
	out := csv.NewWriter(w)
	late := "lateness"
	if !m.Service.ByInterval() {
		late = "latency"
	}
	if m.Service.Shared() {
		late = "spread"
	}
	sent := publishedByBucket(m)
	head := []any{
		"unix_s", "open", "opened", "closed", m.Service.Noun() + "s", "late", "faults", late + "_p50_ms", late + "_p99_ms", late + "_max_ms",
		"runner_rss_bytes", "runner_heap_live_bytes", "runner_cpu_percent", "runner_goroutines", "runner_gc_pause_us", "runner_run_delay_ms", "runner_stall_ms",
		"backend_rss_bytes", "backend_cpu_percent", "backend_streams_open", "backend_goroutines", "backend_open_fds",
		"nginx_rss_bytes", "nginx_cpu_percent",
		"runner_threads", "backend_threads", "nginx_threads", "host_network_received_bytes", "host_network_sent_bytes", "dns_lookup_ms",
	}
	if sent != nil {
		head = append(head, "published", "confirmed")
	}
	row(out, head...)
	next := 0
	for _, b := range m.Series {
		var now, before resources.Sample
		for next < len(samples) && samples[next].Unix < b.Unix+int64(shard.BucketWidth/time.Second) {
			next++
		}
		if next > 0 {
			now = samples[next-1]
		}
		if next > 1 {
			before = samples[next-2]
		}
		p50, p99, most := latenessCells(b)
		values := []any{
			b.Unix, b.Open, b.Opened, b.Closed, b.Noops, b.Late, b.Faults, p50, p99, most,
			b.RSS, b.HeapLive, fixed(b.CPUPercent), b.Goroutines, b.GCPauseUS, b.RunDelayMS, b.StallMS,
			now.BackendRSS, rate(before.BackendCPU, now.BackendCPU, before.Unix, now.Unix), now.Streams, now.Goroutines, now.Files,
			now.NginxRSS, rate(before.NginxCPU, now.NginxCPU, before.Unix, now.Unix),
			b.Threads, now.BackendThreads, now.NginxThreads, now.Received, now.Transmitted, now.LookupMS,
		}
		if sent != nil {
			values = append(values, sent[b.Unix].sent, sent[b.Unix].confirmed)
		}
		row(out, values...)
	}
	out.Flush()
	return out.Error()
}

// row writes values as they print; csv.Writer keeps its error for Error.
func row(out *csv.Writer, values ...any) {
	cells := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) { // fmt alone would take most of the time of a million rows
		case string:
			cells[i] = v
		case int:
			cells[i] = strconv.Itoa(v)
		case uint64:
			cells[i] = strconv.FormatUint(v, 10)
		default:
			cells[i] = fmt.Sprint(v)
		}
	}
	_ = out.Write(cells)
}

// latenessCells returns the lateness of a bucket; empty if no message was received: 0 would report that it was on time.
func latenessCells(b shard.Bucket) (p50, p99, most string) {
	h := lateness(b)
	if h == nil {
		return "", "", ""
	}
	return decimals(h.Quantile(.5), time.Millisecond), decimals(h.Quantile(.99), time.Millisecond), decimals(h.Max(), time.Millisecond)
}

func rate(before, now float64, from, to int64) string {
	if to <= from || from == 0 || now < before {
		return ""
	}
	return fixed(100 * (now - before) / float64(to-from))
}

// fixed returns a number with one decimal.
func fixed(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func decimals(d, unit time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(unit), 'f', 3, 64)
}

func stamp(known bool, t time.Time) string {
	if !known {
		return ""
	}
	return strconv.FormatFloat(float64(t.UnixMicro())/1e6, 'f', 6, 64)
}
