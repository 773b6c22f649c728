package suite

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// soak keeps all streams open for the whole run. It is the default suite: plan.json does not name it, and its script
// does not declare a suite.
var soak = Suite{
	Name:     "soak",
	Short:    "keep all streams open for the whole run, and check all their messages",
	Script:   []string{"load-tests", "sse", "connectionTest.js"},
	Plan:     Plan{BySettings: true},
	Target:   Target{Streams: true},
	Sampling: Sampling{Interval: resources.Interval, Optional: true},
	Page: Page{Doc: "docs/accounting.md", Sections: []string{
		"checks", "actions", "windows", "plan", "account", "published", "timelines", "lateness", "machines", "leaks", "ends", "teardown", "arithmetic", "comparison", "headroom", "data",
	}},
	Assess: assessSoak, Metrics: soakMetrics,
}

func assessSoak(r *Run) verdict.Assessment {
	s := r.streams()
	return verdict.Assessment{
		Streams: s, Warnings: s.Warnings, Passed: s.PassSentences(),
		Checks: slices.Concat(s.CutChecks(), s.FaultChecks(), s.OpenTimeChecks(), []verdict.Check{s.GeneratorCheck()}, s.AgreementChecks()),
		Doubts: []verdict.Check{s.UndetectableLossCheck()}, Tables: endTables(s.EndRequests),
	}
}

// The names of metrics to which special rules of comparisons apply. Comparisons match all metrics by name.
const (
	LatencyP50        = "latency p50"
	LatencyP99        = "latency p99"
	LatenessP99       = "lateness p99"
	LastSubscriberP50 = "last subscriber p50"
	LastSubscriberP99 = "last subscriber p99"
)

// soakMetrics returns the metrics of a soak. The lateness of a feed is the spread between its clients.
func soakMetrics(v *verdict.Verdict) (out []verdict.Metric) {
	ms := func(name string, value float64) {
		out = append(out, verdict.Metric{Name: name, Unit: "ms", Value: value})
	}
	if v.Service.HasInterval() && v.LatenessMS != (verdict.Quantiles{}) { // known: two noops of one stream arrived
		ms(LatenessP99, v.LatenessMS.P99)
	}
	if v.Service.ComparesClients() {
		ms("spread p99", v.LatenessMS.P99)
	}
	if v.ConnectMS != (verdict.Quantiles{}) { // known: a stream opened
		ms("connect p50", v.ConnectMS.P50)
		ms("connect p99", v.ConnectMS.P99)
	}
	if l := v.LatencyMS; l != nil {
		ms(LatencyP50, l.P50)
		ms(LatencyP99, l.P99)
	}
	if e := v.EndRequests; e != nil && e.Count > 0 {
		ms("end response p99", e.MS.P99)
	}
	if last := v.Messages.LastSubscriberMS; last != nil {
		ms(LastSubscriberP50, last.P50)
		ms(LastSubscriberP99, last.P99)
	}
	if p := v.Messages.Published; p != nil {
		ms("publish response p99", p.ResponseMS.P99)
	}
	r := v.Resources
	ifKnown := func(rss uint64, metrics ...verdict.Metric) {
		if rss > 0 { // otherwise no sample of the process is known
			out = append(out, metrics...)
		}
	}
	mib := func(name string, bytes uint64) verdict.Metric {
		return verdict.Metric{Name: name, Unit: "MiB", Value: float64(bytes) / (1 << 20)}
	}
	ifKnown(r.BackendRSSMax, mib("backend memory", r.BackendRSSMax), verdict.Metric{Name: "backend CPU", Unit: "%", Value: r.BackendCPUAverage})
	ifKnown(r.NginxRSSMax, mib("nginx memory", r.NginxRSSMax))
	ifKnown(r.RunnerRSSMax, mib("runner memory", r.RunnerRSSMax), verdict.Metric{Name: "runners' CPU", Unit: "%", Value: r.RunnerCPUAverage})
	return out
}

// resume is a soak that disconnects streams while messages continue (internal/plan/cuts.go).
var resume = Suite{
	Name:     "resume",
	Short:    "disconnect streams while messages continue, and check every message",
	Script:   []string{"load-tests", "sse", "resume.js"},
	Target:   soak.Target,
	Sampling: soak.Sampling,
	Plan: Plan{BySettings: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=600", "SECONDS=600", "NOOP_INTERVAL=1", "CUTS_PER_SECOND=4"},
		"smoke": {"CONNECTIONS=60", "SECONDS=20", "NOOP_INTERVAL=1", "CUTS_PER_SECOND=6", "PAUSE=2"},
	}},
	Page:   Page{Doc: "docs/suites.md", Sections: resumeSections()},
	Assess: assessResume, Metrics: resumeMetrics,
}

// resumeSections returns the sections of a soak, but with a table of disconnects in place of the table of end requests.
func resumeSections() []string {
	return slices.DeleteFunc(slices.Insert(slices.Clone(soak.Page.Sections), 2, "results"), func(name string) bool { return name == "teardown" })
}

func assessResume(r *Run) verdict.Assessment {
	a := assessSoak(r)
	a.Tables = []verdict.Table{a.Streams.CutTable()}
	return a
}

func resumeMetrics(v *verdict.Verdict) (out []verdict.Metric) {
	for _, c := range v.Cuts {
		if c.OutageMS == (verdict.Quantiles{}) {
			continue // no message arrived after a disconnect of this kind
		}
		out = append(out, verdict.Metric{Name: "outage after " + c.Kind + " p50", Unit: "ms", Value: c.OutageMS.P50})
	}
	return append(out, soakMetrics(v)...)
}

// endTables returns the table of the requests that ended the streams, or nil if no request was made.
func endTables(e *verdict.EndRequests) []verdict.Table {
	if e == nil {
		return nil
	}
	t := newTable("Requests that end the streams", sentence("%s: %s from the first request to the end of the last one, at most %v in one second. "+
		"Times in ms, from the start of the request, including the wait for a connection, to the last byte of the response", e.Request, format.Milliseconds(1000*e.Seconds), e.MaxPerSecond),
		"requests|count|per second|min|p50|p95|p99|max")
	rate := func(n int64) string {
		if e.Seconds < 1 {
			return "" // too short for a rate
		}
		return count(float64(n) / e.Seconds)
	}
	add := func(name string, n int64, rate, min string, q *verdict.Quantiles) {
		cells := row(name, n, rate, min, "", "", "", "")
		if q != nil {
			copy(cells[4:], []string{figure(q.P50), figure(q.P95), figure(q.P99), figure(q.Max)})
		}
		t.Add(cells...)
	}
	succeeded := func(name string, times verdict.EndTimes) {
		if times.Count == 0 {
			add(name, 0, "", "", nil)
			return
		}
		add(name, times.Count, rate(times.Count), figure(times.MinMS), &times.MS)
	}
	succeeded("succeeded", e.EndTimes)
	for _, s := range e.Servers {
		if s.Count > 0 {
			succeeded("succeeded at "+s.Name, s.EndTimes)
		}
	}
	if e.FailedMS != nil {
		add("failed", e.Failed, rate(e.Failed), "", e.FailedMS)
	}
	for _, code := range byCount(e.Failures) {
		add("failed: "+codeText(code), e.Failures[code], "", "", nil)
	}
	for _, s := range e.Servers {
		if s.Failed > 0 {
			add("failed at "+s.Name, s.Failed, "", "", nil)
		}
	}
	return []verdict.Table{t}
}
