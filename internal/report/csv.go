package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
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
	words := verdict.FormatterOf(m)
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
			decimals(c.Connect, time.Millisecond), decimals(c.StreamTime, time.Second), c.Streams,
		}
		for _, n := range c.Totals().Each() {
			values = append(values, n.Count)
		}
		values = append(values,
			decimals(c.MaxGap, time.Millisecond), decimals(c.MaxLateness, time.Millisecond),
			outages(c, runner), cell(strings.Join(findings, "; ")),
			decimals(c.OpenTime, time.Second), decimals(c.OutageTime, time.Second), decimals(c.Longest.To-c.Longest.From, time.Second),
			c.Attempts, cell(attempts(c)),
		)
		values = append(values, messageCells(m, c)...)
		row(out, values...)
	}
	out.Flush()
	return out.Error()
}

// cell prevents a spreadsheet from interpreting text as a formula (CWE-1236).
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(text)[0]) {
		return "'" + text
	}
	return text
}

// outages lists the outages of a client and their lengths.
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

// SeriesCSV writes a row for each bucket of five seconds: the observations of the clients, and the
// use of CPU and memory by the processes.
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
			b.RSS, b.HeapLive, oneDecimal(b.CPUPercent), b.Goroutines, b.GCPauseUS, b.RunDelayMS, b.StallMS,
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
	return oneDecimal(100 * (now - before) / float64(to-from))
}

// oneDecimal formats a number with one decimal.
func oneDecimal(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func decimals(d, unit time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(unit), 'f', 3, 64)
}

func stamp(known bool, t time.Time) string {
	if !known {
		return ""
	}
	return strconv.FormatFloat(float64(t.UnixMicro())/1e6, 'f', 6, 64)
}

// CutsCSV writes a row for each disconnect that the run made of its own streams, by connection. The time of a missing
// event is empty.
func CutsCSV(w io.Writer, m *shard.Merged, v *verdict.Verdict) error {
	out := csv.NewWriter(w)
	row(out, "id", "runner", "cut", "at_unix_s", "behind", "ended_the_stream", "back_unix_s", "asked", "first_unix_s", "first_message", "away_s",
		"lost", "doubled", "repeated", "announced")
	for r, c := range v.AllCuts() {
		runner := m.Runners[r.Runner]
		outage := ""
		if d, ok := c.Interruption(); ok {
			outage = decimals(d, time.Second)
		}
		row(out, cell(r.ID), runner.Index, cell(c.Kind), stamp(true, runner.At(c.At)), number(c.LastNumber), c.Lost, stamp(c.ReconnectedAt > 0, runner.At(c.ReconnectedAt)), c.ResumeRequested,
			stamp(c.First > 0, runner.At(c.First)), number(c.Next), outage, c.Missed, c.Duplicated, c.Repeated, c.Announced)
	}
	out.Flush()
	return out.Error()
}

// messageHead names the columns of connections.csv on the messages of a client and on other events.
var messageHead = []any{"topic", "first", "last", "heartbeats", "foreign", "repeated", "announced_gaps", "uncounted", "max_silence_s", "strayed"}

// messageCells returns the values of these columns. The numbers of the first and the last message are empty if none arrived.
func messageCells(m *shard.Merged, c *shard.Connection) []any {
	topic, _, published := m.Topic(c)
	if !published {
		topic, _ = m.FeedTopic(c)
	}
	return []any{
		cell(topic), number(c.First), number(c.Last), c.Heartbeats, c.Foreign, c.Repeated, c.Gaps, c.Uncounted, silence(c), c.Misrouted,
	}
}

// silence returns the longest silence of a client in seconds; "" if it was not measured.
func silence(c *shard.Connection) any {
	if c.MaxSilence == 0 {
		return ""
	}
	return decimals(c.MaxSilence, time.Second)
}

func number(n uint64) any {
	if n == 0 {
		return ""
	}
	return n
}

// A publishedIn is the number of messages sent in a bucket of the series, and of those that the service confirmed.
type publishedIn struct{ sent, confirmed int }

// publishedByBucket returns what was published, by the start of a bucket; nil if nothing was.
func publishedByBucket(m *shard.Merged) map[int64]publishedIn {
	all := m.Publishers()
	if len(all) == 0 {
		return nil
	}
	const width = int64(shard.BucketWidth / time.Second)
	out := map[int64]publishedIn{}
	for _, p := range all {
		for k := range p.Topics {
			for _, message := range p.Topic(k) {
				at := message.SentUS / 1e6 / width * width
				sum := out[at]
				sum.sent++
				if message.State == shard.Confirmed {
					sum.confirmed++
				}
				out[at] = sum
			}
		}
	}
	return out
}

// TableFile returns the name of the file with a table of a suite: "Latency of good answers, ms" is in
// latency-of-good-answers-ms.csv.
func TableFile(t *verdict.Table) string {
	words := strings.FieldsFunc(strings.ToLower(t.Title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-") + ".csv"
}

// TableCSV writes a table of a suite for a spreadsheet: numbers without the commas that people read them by.
func TableCSV(w io.Writer, t *verdict.Table) error {
	out := csv.NewWriter(w)
	head := make([]string, len(t.Columns))
	for i, text := range t.Columns {
		head[i] = cell(text)
	}
	_ = out.Write(head) // Error returns its error
	for _, cells := range t.Rows {
		escaped := make([]string, len(cells))
		for i, text := range cells {
			if t.Numeric(i) {
				escaped[i] = strings.ReplaceAll(text, ",", "")
			} else {
				escaped[i] = cell(text)
			}
		}
		_ = out.Write(escaped)
	}
	out.Flush()
	return out.Error()
}
