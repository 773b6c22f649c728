package suite

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var handshake = Suite{
	Name:   "handshake",
	Short:  "connect many clients: a TCP and a mutual TLS 1.3 handshake each, none resumed",
	Script: []string{"load-tests", "http", "handshake.js"},
	Settings: []Setting{
		{"CONNECTIONS", "numbers of connections, with commas between; one scale runs after the other"},
		{"CERTS", "folder of the certificates, as make certs makes it (default certs)"},
		{"WORKERS", "virtual users that connect"},
		{"MAX_CONCURRENT", "most connections at a time; 0: WORKERS, or as many as are to be held"},
		{"RATE_LIMIT", "most connections per second; 0: no limit"},
		{"HOLD_SECONDS", "seconds to keep the connections open; 0: close each after its answer"},
		{"ASK_SECONDS", "seconds between two requests on an open connection"},
		{"TIMEOUT_SECONDS", "seconds from the dial to the answer at most"},
		{"MAX_SECONDS", "seconds that the run may take at most"},
		{"MAX_FAILED_PERCENT", "the run fails if more than this share of the connections of a scale fails"},
		{"MIN_RATE", "minimum connections per second at each scale, 0 for any"},
		{"MAX_MEAN_MS", "maximum mean time of a connection at each scale in ms, 0 for any"},
	},
	Target:  Target{Kind: MutualTLS},
	Runners: Runners{Default: 1, NoKubernetes: "its certificates are files of this machine"},
	Page:    Page{Doc: "docs/handshake.md"},
	Assess:  assessHandshake,
}

func assessHandshake(r *Run) verdict.Assessment {
	m, stages := r.Rounds[0], r.stages()
	sum := total(stages)
	a := verdict.Assessment{
		Facts: []verdict.Fact{
			{Name: "connections", Value: fmt.Sprintf("%s made, %s good, %s failed", format.Thousands(sum.Total()), format.Thousands(sum.OK.Count()), ratio(sum.Failed.Count(), sum.Total()))},
			{Name: "rate", Value: rate(r, sum)},
			{Name: "failed by", Value: dominant(sum.Requests)},
			{Name: "peak", Value: peakOpen(m, stages)},
		},
		Passed: []string{fmt.Sprintf("%s of %s connections came about, each with a full handshake; strangers were refused", format.Thousands(sum.OK.Count()), format.Thousands(sum.Total()))},
	}
	a.Checks = append([]verdict.Check{allMade(stages), failedShare(r, stages), strangersRefused(m)}, r.fastEnough(stages)...)
	memory, flat := r.memoryByScale(m, stages)
	if r.number("HOLD_SECONDS") > 0 {
		a.Checks = append(a.Checks, heldToTheEnd(m))
		a.Checks = append(a.Checks, heldAtATime(m, stages[0])...)
		held := r.heldMemory(m, stages[0])
		memory, a.Metrics = held.table(), held.metrics()
	}
	a.Checks = append(a.Checks, flat...)
	a.Tables = []verdict.Table{scaleTable(m, stages), phaseTable(m, stages), bytesTable(m, stages)}
	if len(sum.Codes) > 0 {
		a.Tables = append(a.Tables, sum.causes("Why connections failed", "cause", "connections", inWords))
	}
	a.Tables = append(a.Tables, memory, r.memoryOverTime(m, stages))
	a.Tables = append(a.Tables, r.resourceTables(stages, stages)...)
	for _, st := range stages {
		a.Metrics = append(a.Metrics,
			verdict.Metric{Name: "connections/s of " + count(float64(st.Requests.Total())), Unit: "connections/s", Value: st.PerSecond(), HigherIsBetter: true},
			verdict.Metric{Name: "whole p99 of " + count(float64(st.Requests.Total())), Unit: "ms", Value: quantile(st.OK, .99)})
	}
	return a
}

// fastEnough returns the checks for the rate and the mean time at each scale, if they have limits. If the generator was
// saturated, they make the run invalid instead of a fail.
func (r *Run) fastEnough(stages []StageResult) (out []verdict.Check) {
	compare := func(id verdict.CheckID, name, limit, why string, value func(StageResult) string, kept func(StageResult) bool) {
		c := verdict.Check{ID: id, Name: name, Limit: limit, Actual: "kept at each scale", Pass: true, Why: why}
		saturated := false
		for _, st := range stages {
			if kept(st) {
				continue
			}
			text := fmt.Sprintf("%s connections: %s, the limit is %s", st.Title, value(st), limit)
			if cause := st.Machine.GeneratorLimit(); cause != "" {
				saturated = true
				text += "; the load generator may be the reason: " + cause
			}
			c.Pass, c.Actual, c.Reasons = false, value(st), append(c.Reasons, text)
		}
		if saturated {
			c.ExplainedBy = verdict.SignalGenerator
			c = c.InDoubt()
		}
		out = append(out, c)
	}
	if least := r.number("MIN_RATE"); least > 0 {
		compare(CheckRate, "connections per second", "at least "+count(least), "a reconnect storm lasts as long as its handshakes",
			func(st StageResult) string { return count(st.PerSecond()) + "/s" }, func(st StageResult) bool { return st.PerSecond() >= least })
	}
	if most := r.number("MAX_MEAN_MS"); most > 0 {
		compare(CheckMean, "mean time of a connection", "at most "+ms(most), "users wait that long to connect",
			func(st StageResult) string { return ms(st.Mean()) }, func(st StageResult) bool { return st.OK.Count() > 0 && st.Mean() <= most })
	}
	return out
}

// rate is nothing of the server alone where it shares its cores with the runners.
func rate(r *Run, sum Total) string {
	text := count(sum.PerSecond()) + " full handshakes per second"
	if r.OneHost {
		text += fmt.Sprintf(", on %d cores that runners and server share", r.Cores)
	}
	return text
}

// allMade makes a run invalid that did not come to its end: MAX_SECONDS was over, say.
func allMade(stages []StageResult) verdict.Check {
	var planned, made int64
	for _, st := range stages {
		planned += int64(st.Stage.Requests)
		made += st.Total()
	}
	return verdict.Check{
		ID: CheckTried, Name: "connections tried", Limit: format.Thousands(planned), Actual: format.Thousands(made), Pass: made == planned && planned > 0, Severity: verdict.SeverityInconclusive,
		Why: "a scale that was cut short proves nothing",
	}
}

func failedShare(r *Run, stages []StageResult) verdict.Check {
	limit := r.number("MAX_FAILED_PERCENT") / 100
	c := verdict.Check{
		ID: CheckFailed, Name: "failed connections", Limit: "at most " + percentOf(limit), Pass: true, Why: "who cannot connect gets nothing at all",
	}
	if len(stages) == 0 {
		return c.NotJudged("no connection was tried")
	}
	var worst float64
	for _, st := range stages {
		worst = max(worst, st.FailedShare())
		if st.FailedShare() > limit {
			c.Pass = false
			c.Reasons = append(c.Reasons, fmt.Sprintf("of %s connections %s failed; dominant cause: %s", st.Title, percentOf(st.FailedShare()), dominant(st.Requests)))
		}
	}
	c.Actual = percentOf(worst)
	return c
}

// strangers are the kinds of clients that a server must refuse, as the script names them.
var strangers = []string{"without a certificate", "with a foreign certificate", "with a certificate of another authority of the same name"}

// strangersRefused reads what the script checks before and throughout the load. It checks only what the server told:
// an answer lets a stranger in, an alert or a refusing status does not.
func strangersRefused(m *shard.Merged) verdict.Check {
	c := verdict.Check{
		ID: CheckStrangers, Name: "strangers are refused", Limit: "each attempt, before and during the load", Pass: true,
		Why: "the server must accept no untrusted certificate",
	}
	var attempts int64
	for _, how := range strangers {
		passes, fails := checked(m, "refused "+how)
		attempts += passes
		answered, ends := stranger(m, how)
		switch {
		case fails > 0 && answered:
			c.Pass, c.Severity, c.Actual = false, verdict.SeverityFail, "let in"
			c.Reasons = append(c.Reasons, fmt.Sprintf("a client %s got an answer: %s of %s attempts", how, format.Thousands(fails), format.Thousands(passes+fails)))
			return c // one accepted stranger decides
		case fails > 0 || passes == 0 && len(ends) > 0:
			c.Pass, c.Severity, c.Actual = false, verdict.SeverityInconclusive, "not told"
			c.Reasons = append(c.Reasons, fmt.Sprintf("nobody knows whether a client %s is refused: %s", how, strings.Join(ends, ", ")))
		case passes == 0:
			c.Pass, c.Severity, c.Actual = false, verdict.SeverityInconclusive, "not tried"
		}
	}
	if c.Pass {
		c.Actual = "all " + format.Thousands(attempts)
	}
	return c
}

// stranger reports whether a stranger got an answer, and how its other connections ended, in words.
func stranger(m *shard.Merged, how string) (answered bool, ends []string) {
	for _, metric := range m.Metrics {
		if metric.Tags[shard.TagStage] != "stranger "+how {
			continue
		}
		switch cause := metric.Tags["cause"]; metric.Name {
		case "handshake_answer":
			answered = answered || metric.Count > 0
		case "handshake_failed":
			if cause != "client_certificate" && cause != "status" {
				ends = append(ends, inWords(cause))
			}
		}
	}
	return answered, ends
}

func heldToTheEnd(m *shard.Merged) verdict.Check {
	passes, fails := checked(m, "held to the end")
	return verdict.Check{
		ID: verdict.CheckHeld, Name: "connections held to the end", Limit: format.Thousands(passes + fails), Actual: format.Thousands(passes), Pass: fails == 0 && passes > 0,
		Why: "each is asked again and again, and has to answer on the same connection",
	}
}

// heldAtATime makes a run invalid in which the first worker let its connections go before the last one had opened all of its own:
// so many were never open at a time.
func heldAtATime(m *shard.Merged, st StageResult) []verdict.Check {
	let := sumsByStage(m, "handshake_released")[st.Name]
	if let.Count == 0 || st.OK.Count() == 0 {
		return nil
	}
	var last int64
	for _, metric := range st.metrics {
		if metric.Tags[shard.TagCode] == shard.CodeOK {
			last = max(last, metric.LastUS)
		}
	}
	all := time.Duration(let.FirstUS-last) * time.Microsecond
	c := verdict.Check{
		ID: CheckHeldAtOnce, Name: "all held at a time", Limit: "for a while", Actual: format.Duration(all), Pass: all > 0, Severity: verdict.SeverityInconclusive,
		Why: "connections that are gone before the others come load nobody",
	}
	if !c.Pass {
		c.Actual = "never"
		c.Reasons = []string{fmt.Sprintf("the first connections were let go %s before the last one was open, so they were never all held at a time: raise HOLD_SECONDS by that much, or ask for less",
			format.Duration(-all))}
	}
	return []verdict.Check{c}
}

func checked(m *shard.Merged, name string) (passes, fails int64) {
	for _, c := range m.Checks {
		if c.Name == name {
			return c.Passes, c.Fails
		}
	}
	return 0, 0
}
