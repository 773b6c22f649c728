package suite

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var handshake = Suite{
	Name:    "handshake",
	Short:   "connect many clients, each with a TCP and a full mutual TLS 1.3 handshake",
	Script:  []string{"load-tests", "http", "handshake.js"},
	Target:  Target{Kind: MutualTLS},
	Runners: Runners{Default: 1, NoKubernetes: "its certificates are files on this machine"},
	Page:    Page{Doc: "docs/http.md#handshakes"},
	Assess:  assessHandshake,
}

func assessHandshake(r *Run) verdict.Assessment {
	m, stages := r.Rounds[0], r.stages()
	sum := total(stages)
	rate := count(sum.PerSecond()) + " full handshakes per second"
	if r.OneHost {
		rate += fmt.Sprintf(", on %s shared by runners and server", format.Count(r.Cores, "core"))
	}
	a := verdict.Assessment{
		Facts: []verdict.Fact{
			{Name: "connections", Value: sentence("%v tried, %v good, %s failed", sum.Total(), sum.OK.Count(), ratio(sum.Failed.Count(), sum.Total()))},
			{Name: "rate", Value: rate},
			{Name: "main cause of failures", Value: dominantCause(sum)},
			{Name: "peak", Value: peakOpen(m, stages)},
		},
		Passed: []string{sentence("%v of %v connections were made, each with a full handshake; untrusted certificates were refused", sum.OK.Count(), sum.Total())},
	}
	a.Checks = append([]verdict.Check{checkAllTried(stages), r.checkFailures(stages), checkUntrustedRefused(m)}, r.checkHandshakeLimits(stages)...)
	memory, flat := r.memoryByScale(m, stages)
	if r.number("HOLD_SECONDS") > 0 {
		a.Checks = append(append(a.Checks, checkOpenToTheEnd(m, stages[0])), checkOpenTogether(m, stages[0])...)
		memory, a.Metrics = r.openConnectionMemory(m, stages[0])
	}
	a.Checks = append(a.Checks, flat...)
	a.Tables = []verdict.Table{scaleTable(m, stages), phaseTable(m, stages), bytesTable(m, stages)}
	if len(sum.Codes) > 0 {
		a.Tables = append(a.Tables, sum.causes("Why connections failed", "cause", "connections", causeText))
	}
	a.Tables = append(append(a.Tables, memory, r.memoryOverTime(m, stages)), r.resourceTables(stages, stages)...)
	for _, st := range stages {
		scale := count(float64(st.Requests.Total()))
		a.Metrics = append(a.Metrics,
			verdict.Metric{Name: "connections/s of " + scale, Unit: "connections/s", Value: st.PerSecond(), HigherIsBetter: true},
			verdict.Metric{Name: "total p99 of " + scale, Unit: "ms", Value: quantile(st.OK, .99)})
	}
	return a
}

// checkHandshakeLimits returns the checks of the rate and the mean time at each scale, if they have limits. If the load
// generator was saturated at each scale that misses a limit, the unmet check turns a pass into invalid, not into a
// fail.
func (r *Run) checkHandshakeLimits(stages []StageResult) (out []verdict.Check) {
	compare := func(id verdict.CheckID, name, limit string, value func(StageResult) string, holds func(StageResult) bool) {
		actual, saturated, reasons := "met at each scale", 0, []string(nil)
		for _, st := range stages {
			if holds(st) {
				continue
			}
			actual = value(st)
			text := fmt.Sprintf("%s connections: %s (limit: %s)", st.Title, actual, limit)
			if cause := st.Machine.GeneratorLimit(); cause != "" {
				saturated++
				text += "; the load generator may be the cause: " + cause
			}
			reasons = append(reasons, text)
		}
		out = append(out, attributeIf(saturated == len(reasons), check(id, name, limit, actual, len(reasons) == 0, reasons...)))
	}
	if limit := r.number("MIN_RATE"); limit > 0 {
		compare(CheckRate, "connections per second", atLeast(limit),
			func(st StageResult) string { return count(st.PerSecond()) + "/s" }, func(st StageResult) bool { return st.PerSecond() >= limit })
	}
	if limit := r.number("MAX_MEAN_MS"); limit > 0 {
		compare(CheckMean, "mean time of a connection", "at most "+ms(limit),
			func(st StageResult) string { return ms(st.Mean()) }, func(st StageResult) bool { return st.OK.Count() > 0 && st.Mean() <= limit })
	}
	return out
}

func checkAllTried(stages []StageResult) verdict.Check {
	var planned, attempts int64
	for _, st := range stages {
		planned += int64(st.Stage.Requests)
		attempts += st.Total()
	}
	return check(CheckTried, "connections tried", text(planned), attempts, attempts == planned && planned > 0).AsDoubt()
}

// checkFailures returns the check that at most MAX_FAILED_PERCENT of the connections of each scale failed. If the limit
// is exceeded only because of failures of the load generator, the run is invalid unless another check fails it.
func (r *Run) checkFailures(stages []StageResult) verdict.Check {
	limit := r.share("MAX_FAILED_PERCENT")
	var worst float64
	var reasons []string
	failedByService := false
	for _, st := range stages {
		worst = max(worst, st.FailedShare())
		failedByService = failedByService || share(st.Failed.Count()-st.Attributed, st.Total()) > limit
		if st.FailedShare() > limit {
			reasons = append(reasons, fmt.Sprintf("of %s connections, %s failed; main cause: %s", st.Title, distinctPercent(limit, st.FailedShare(), 2), dominantCause(st.Requests)))
		}
	}
	c := check(CheckFailed, "failed connections", "at most "+percentOf(limit), distinctPercent(limit, worst, 2), len(reasons) == 0, reasons...)
	if len(stages) == 0 {
		return c.NotJudged("no connection was tried")
	}
	return attributeIf(!failedByService, c)
}

// untrustedClients are the kinds of clients that a server must refuse, as the script names them.
var untrustedClients = []string{"without a certificate", "with a foreign certificate", "with a certificate of another authority of the same name"}

// checkUntrustedRefused returns the check that the server refused all untrusted certificates, before and during the
// load. The checks of the script count only attempts that the server answered, or refused with an alert or a status.
func checkUntrustedRefused(m *shard.Merged) verdict.Check {
	c := check(CheckUntrusted, "untrusted certificates are refused", "each attempt, before and during the load", "", true)
	var attempts int64
	for _, credentials := range untrustedClients {
		passes, fails := scriptCheck(m, "refused "+credentials)
		attempts += passes
		answered, failures := untrustedResult(m, credentials)
		switch {
		case fails > 0 && answered:
			c.Pass, c.Actual = false, "accepted"
			c.Reasons = append(c.Reasons, sentence("a client %s received a response: %v of %v attempts", credentials, fails, passes+fails))
			return c // one accepted untrusted certificate decides
		case fails > 0 || passes == 0 && len(failures) > 0:
			c.Pass, c.Actual = false, "not known"
			c.Reasons = append(c.Reasons, fmt.Sprintf("it is unknown whether a client %s is refused: %s", credentials, strings.Join(failures, ", ")))
		case passes == 0:
			c.Pass, c.Actual = false, "not tried"
		}
	}
	if c.Pass {
		c.Actual = "all " + text(attempts)
	}
	return c.AsDoubt()
}

// untrustedResult reports whether an untrusted client received a response. failures describes the client's failures
// other than refused certificates and error statuses.
func untrustedResult(m *shard.Merged, credentials string) (answered bool, failures []string) {
	for _, metric := range m.Metrics {
		if metric.Tags[shard.TagStage] != "untrusted "+credentials {
			continue
		}
		switch cause := metric.Tags["cause"]; metric.Name {
		case "handshake_answer":
			answered = answered || metric.Count > 0
		case "handshake_failed":
			if cause != "client_certificate" && cause != "status" {
				failures = append(failures, causeText(cause))
			}
		}
	}
	return answered, failures
}

// checkOpenToTheEnd returns the check that all connections that the script keeps open were open at the end. If the load
// generator could not open the missing ones, the run is invalid unless another check fails it.
func checkOpenToTheEnd(m *shard.Merged, st StageResult) verdict.Check {
	passes, fails := scriptCheck(m, "open to the end")
	c := check(verdict.CheckOpenToEnd, "connections open to the end", text(passes+fails), passes, fails == 0 && passes > 0)
	return attributeIf(fails > 0 && fails <= st.Attributed, c)
}

// checkOpenTogether returns the check that all connections were open at the same time: the first one closed after the
// last one had opened. It returns nil if no connection was opened, or none was closed.
func checkOpenTogether(m *shard.Merged, st StageResult) []verdict.Check {
	released := sumsByStage(m, "handshake_released")[st.Name]
	if released.Count == 0 || st.OK.Count() == 0 {
		return nil
	}
	var last int64
	for _, metric := range st.metrics {
		if metric.Tags[shard.TagCode] == shard.CodeOK {
			last = max(last, metric.LastUS)
		}
	}
	overlap := time.Duration(released.FirstUS-last) * time.Microsecond
	c := check(CheckOpenTogether, "all open at the same time", "for longer than 0 s", overlap, overlap > 0,
		sentence("the first connections were closed %v before the last one was open, so the connections were never all open at the same time; "+
			"raise HOLD_SECONDS by that much, or open fewer connections", -overlap))
	if !c.Pass {
		c.Actual = "never"
	}
	return []verdict.Check{c.AsDoubt()}
}

func scriptCheck(m *shard.Merged, name string) (passes, fails int64) {
	for _, c := range m.Checks {
		if c.Name == name {
			return c.Passes, c.Fails
		}
	}
	return 0, 0
}

// causes describes the causes of failures by their names in k6/x/handshake.
var causes = map[string]string{
	"interrupted": "interrupted", "dns": "name lookup failed", "refused": "connection refused", "unreachable": "no route",
	"tcp_timeout": "no TCP connection in time", "tcp_reset": "reset while connecting", "no_ports": "no ephemeral port left on this host",
	"no_descriptors": "no file descriptor left in the runner", "no_ipv6": "no IPv6 address on this host", "server_certificate": "the server's certificate is not trusted",
	"client_certificate": "the server refused the client's certificate", "tls_alert": "the server aborted the handshake",
	"tls_timeout": "no TLS handshake in time", "tls_reset": "the server closed the connection during the handshake", "tls": "the server does not use TLS",
	"resumed": "the session was resumed", "answer_timeout": "no response in time", "answer_reset": "the server closed the connection before the response",
	"status": "an error status", "answer": "no HTTP response",
}

func dominantCause(q *Requests) string {
	if len(q.Codes) == 0 {
		return "none failed"
	}
	first := q.codesByCount()[0]
	return sentence("%s (%v of %v failures)", causeText(first), q.Codes[first], q.Failed.Count())
}

func causeText(cause string) string { return cmp.Or(causes[cause], cause) }

// peakOpen states the maximum number of concurrent connections. Each runner counts its own connections.
func peakOpen(m *shard.Merged, stages []StageResult) string {
	open, highest := sumsByStage(m, "handshake_open"), 0.
	for _, st := range stages {
		highest = max(highest, open[st.Name].Max)
	}
	text := format.Count(int64(highest), "connection") + " open at the same time"
	if len(m.Runners) > 1 {
		text += fmt.Sprintf(" in one of %d runners", len(m.Runners))
	}
	return text
}

func scaleTable(m *shard.Merged, stages []StageResult) verdict.Table {
	t := newTable("Scales", "CPU: per connection, if runners and server are on this machine; peak open: maximum number of open connections in one runner",
		"connections|good|per second|total mean ms|p50|p99|peak open|runner CPU ms|server CPU ms")
	open := sumsByStage(m, "handshake_open")
	for _, st := range stages {
		cpuPerConnection := func(percent float64) string {
			if st.PerSecond() == 0 || percent == 0 { // no good connection, or no sample of the process during the scale
				return "–"
			}
			return figure(10 * percent / st.PerSecond())
		}
		t.Add(row(st.Total(), percentOf(1-st.FailedShare()), st.PerSecond(), figure(st.Mean()), figure(quantile(st.OK, .5)), figure(quantile(st.OK, .99)),
			open[st.Name].Max, cpuPerConnection(st.Machine.Runners), cpuPerConnection(st.Machine.Backend))...)
	}
	return t
}

func phaseTable(m *shard.Merged, stages []StageResult) verdict.Table {
	t := newTable("Phases, ms", "", "connections|phase|n|mean|p50|p99|max")
	for _, st := range stages {
		response := "first response"
		if st.Kind == "held" {
			response = "response"
		}
		for _, phase := range [][2]string{{"tcp", "TCP handshake"}, {"tls", "TLS handshake"}, {"answer", response}} {
			if metric := sumsByStage(m, "handshake_"+phase[0])[st.Name]; metric.Count > 0 {
				cells := row(st.Title, phase[1], metric.Count, figure(metric.Sum/float64(metric.Count)))
				t.Add(append(cells, quantiles(metric.Trend, .5, .99, 1)...)...)
			}
		}
	}
	return t
}

func bytesTable(m *shard.Merged, stages []StageResult) verdict.Table {
	t := newTable("Bytes", "sent and received by the runners, in TLS records without TCP and IP headers; each: per connection, "+
		"with requests and responses; handshake: of completed handshakes; expected: the good connections times the bytes of a single connection "+
		"before the load",
		"connections|sent|received|expected|% of expected|sent each|received each|sent by a handshake|received by a handshake")
	sent, received := sumsByStage(m, "handshake_sent"), sumsByStage(m, "handshake_received")
	tlsSent, tlsReceived := sumsByStage(m, "handshake_tls_sent"), sumsByStage(m, "handshake_tls_received")
	average := func(sum float64, n int64) string {
		if n == 0 {
			return "–"
		}
		return fmt.Sprintf("%.0f", sum/float64(n))
	}
	baseline := received["alone"] // the connections before the load, one at a time
	for _, st := range stages {
		sentOf, receivedOf := sent[st.Name], received[st.Name]
		if sentOf.Count == 0 {
			continue
		}
		expected, share := "–", "–"
		if baseline.Count > 0 && st.OK.Count() > 0 && st.Kind != "held" { // open connections receive more responses
			bytes := baseline.Sum / float64(baseline.Count) * float64(st.OK.Count())
			expected, share = format.Bytes(uint64(bytes)), percentOf(receivedOf.Sum/bytes)
		}
		t.Add(row(st.Total(), format.Bytes(uint64(sentOf.Sum)), format.Bytes(uint64(receivedOf.Sum)), expected, share, average(sentOf.Sum, st.Total()), average(receivedOf.Sum, st.Total()),
			average(tlsSent[st.Name].Sum, tlsSent[st.Name].Count), average(tlsReceived[st.Name].Sum, tlsReceived[st.Name].Count))...)
	}
	return t
}
