package suite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A part holds the requests of a stage, an endpoint or a whole run, under a name for tables.
type part struct {
	name string
	*Requests
}

// addRequests adds the facts, checks and tables that several HTTP suites have. It inserts the tables of extra before the
// tables of the processes. all has all stages of the run. sum has the requests in which failures are counted; the row
// "all" of latencies has the requests of the listed stages.
func (r *Run) addRequests(a *verdict.Assessment, all, listed []StageResult, sum *Requests, extra ...verdict.Table) {
	times, firstBytes := make([]part, 0, len(listed)+1), []part(nil)
	for _, st := range listed {
		times = append(times, part{st.Title, st.Requests})
		if st.firstByte.OK.Count() > 0 {
			firstBytes = append(firstBytes, part{st.Title, st.firstByte})
		}
	}
	a.Facts = append(a.Facts, refusals(listed)...)
	a.Checks = append(a.Checks, r.checkServerCount(all)...)
	a.Tables = append(a.Tables, append(endpointTables(listed), latencyTable("Latency of good responses, ms", "stage", append(times, part{"all", total(listed)})))...)
	if len(firstBytes) > 0 {
		a.Tables = append(a.Tables, latencyTable("Time to the first byte of good responses, ms", "stage", firstBytes))
	}
	a.Tables = slices.Concat(a.Tables, failureTables(listed, sum), extra, r.resourceTables(all, listed))
}

func latencyTable(title, partColumn string, parts []part) verdict.Table {
	t := newTable(title, "", partColumn+"|n|min|mean|sd|p50|p75|p95|p99|max")
	for _, p := range parts {
		if p.OK.Count() == 0 {
			t.Add(p.name, "0", "–", "–", "–", "–", "–", "–", "–", "–")
			continue
		}
		cells := row(p.name, p.OK.Count(), figure(p.fastest), figure(p.Mean()), figure(p.StdDev()))
		t.Add(append(cells, quantiles(p.OK, .5, .75, .95, .99, 1)...)...)
	}
	return t
}

// endpointTables returns the requests by endpoint, in separate tables for each target with several endpoints. The
// stages of a target must not overlap, because their lengths are added up.
func endpointTables(stages []StageResult) (out []verdict.Table) {
	var targets []string
	for _, st := range stages {
		if !slices.Contains(targets, st.Target) {
			targets = append(targets, st.Target)
		}
	}
	for _, target := range targets {
		suffix := ""
		if len(targets) > 1 {
			suffix = ", " + target
		}
		out = append(out, targetTables(target, suffix, stages)...)
	}
	return out
}

func targetTables(target, suffix string, stages []StageResult) []verdict.Table {
	var seconds float64
	byEndpoint := map[string]*Requests{}
	for _, st := range stages {
		if st.Target != target {
			continue
		}
		seconds += st.Span()
		for _, metric := range st.metrics {
			endpoint := metric.Tags[shard.TagEndpoint]
			if byEndpoint[endpoint] == nil {
				byEndpoint[endpoint] = newRequests()
			}
			byEndpoint[endpoint].Add(metric)
		}
		for _, metric := range st.late {
			byEndpoint[metric.Tags[shard.TagEndpoint]].AddLate(metric)
		}
	}
	if len(byEndpoint) < 2 {
		return nil
	}
	counts := newTable("By endpoint"+suffix, "responses/s: over the total time of all stages, without responses after the end of their stage",
		"endpoint|requests|failed|wrong|responses/s")
	var parts []part
	for _, endpoint := range slices.Sorted(maps.Keys(byEndpoint)) {
		q := byEndpoint[endpoint]
		rate := "–"
		if seconds > 0 {
			rate = count(float64(q.timelyResponses()) / seconds)
		}
		counts.Add(row(endpoint, q.Total(), q.Failed.Count(), q.wrongResponses(), rate)...)
		parts = append(parts, part{endpoint, q})
	}
	return []verdict.Table{counts, latencyTable("Latency by endpoint"+suffix+", ms", "endpoint", parts)}
}

func (q *Requests) codesByCount() []string { return byCount(q.Codes) }

// byCount returns the keys in descending order of their counts.
func byCount(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

func (q *Requests) times(code string) *shard.Histogram {
	h := shard.NewHistogram()
	for _, m := range q.metrics {
		if m.Tags[shard.TagCode] == code {
			h.Merge(m.Trend)
		}
	}
	return h
}

func failureTables(stages []StageResult, sum *Requests) []verdict.Table {
	if len(sum.Codes) == 0 {
		return nil
	}
	t := newTable("Duration of failed requests, ms", "by outcome", "stage|outcome|failed|p50|p95|p99|max")
	for _, st := range stages {
		for _, code := range st.codesByCount() {
			h := st.times(code)
			t.Add(append(row(st.Title, codeText(code), h.Count()), quantiles(h, .5, .95, .99, 1)...)...)
		}
	}
	return []verdict.Table{t, sum.causes("Errors", "code", "requests", codeText)}
}

func (q *Requests) causes(title, code, unit string, describe func(string) string) verdict.Table {
	t := newTable(title, "", code+"|description|"+unit+"|of failed|of all")
	for _, code := range q.codesByCount() {
		n := q.Codes[code]
		t.Add(row(code, describe(code), n, percentOf(share(n, q.Failed.Count())), percentOf(share(n, q.Total())))...)
	}
	return t
}

const codeConnectionRefused = shard.CodeNet + "1212"

// minRefusedShare is the share of a stage's requests below which refusals are not mentioned.
const minRefusedShare = .01

// refusals returns a fact if refusals arrived faster than good responses in the stage with the most refusals.
// Otherwise, or if their share is below minRefusedShare, it returns nil. Refusals are the failures with the most
// frequent code among HTTP statuses and refused connections.
func refusals(stages []StageResult) []verdict.Fact {
	mainRefusal := func(st StageResult) (code string, n int64) {
		for _, code := range st.codesByCount() {
			if strings.HasPrefix(code, shard.CodeStatus) || code == codeConnectionRefused {
				return code, st.Codes[code]
			}
		}
		return "", 0
	}
	if len(stages) == 0 {
		return nil
	}
	worst := slices.MaxFunc(stages, func(a, b StageResult) int {
		_, x := mainRefusal(a)
		_, y := mainRefusal(b)
		return int(x - y)
	})
	code, n := mainRefusal(worst)
	refused, answered := quantile(worst.times(code), .5), quantile(worst.OK, .5)
	if share(n, worst.Total()) < minRefusedShare || worst.OK.Count() == 0 || refused >= answered {
		return nil
	}
	return []verdict.Fact{{Name: "refusals", Value: fmt.Sprintf("the service refuses faster than it answers: at %s, the refusal (%s) arrived after %s (p50), "+
		"a good response after %s; clients that retry immediately add to the load, so let them back off exponentially",
		worst.Title, codeText(code), ms(refused), ms(answered))}}
}

func (r *Run) resourceTables(all, listed []StageResult) []verdict.Table {
	byStage := r.cpuTable("stage", "runners", "; –: the stage was over within two seconds")
	cores := newTable("Busy cores", sentence("reserved cores: %s for the service, %s for the runners; the side whose cores were full "+
		"(at least %s busy) was the limit, or the busier side if the cores of both were full; not known: the stage was over within two "+
		"seconds, or other programs used most of the full cores", format.Count(r.ServiceCores, "core"), format.Count(r.RunnerCores, "core"), percent(machineFull)),
		"stage|service|generator|limit")
	for _, st := range listed {
		if st.Total() == 0 {
			continue
		}
		byStage.Rows = append(byStage.Rows, st.Machine.row(st.Title))
		service, generator := percent(st.Machine.ServiceBusy), percent(st.Machine.GeneratorBusy)
		if st.Machine.TooShort {
			service, generator = "–", "–"
		}
		limit, _ := st.Machine.Limit()
		cores.Add(st.Title, service, generator, string(limit))
	}
	out := []verdict.Table{r.processTable(total(all).Total()), byStage}
	if r.ServiceCores > 0 {
		out = append(out, cores)
	}
	return out
}

// processTable returns the CPU and the maximum memory of the processes. The memory of the runners is the sum of their
// maxima, in the round with the largest sum.
func (r *Run) processTable(requests int64) verdict.Table {
	t := newTable("Processes", "CPU per request: CPU time of the whole run, including start and idle time", "process|CPU of a core|CPU per request|maximum memory")
	add := func(name string, cpu, seconds float64, rss uint64) {
		if rss == 0 || seconds == 0 {
			return
		}
		perRequest := "–"
		if requests > 0 {
			perRequest = sentence("%v µs", int64(1e6*cpu/float64(requests)+.5))
		}
		t.Add(name, fmt.Sprintf("%.1f %%", 100*cpu/seconds), perRequest, format.Bytes(rss))
	}
	var rss uint64
	var cpu, seconds float64
	for _, m := range r.Rounds {
		var roundRSS uint64
		for _, runner := range m.Runners {
			roundRSS += runner.RSSMax
			cpu += runner.CPUSeconds
		}
		rss = max(rss, roundRSS)
		if len(m.Runners) > 0 {
			seconds += float64(m.Runners[0].EndedUS-m.Runners[0].StartedUS) / 1e6
		}
	}
	add("runners, together", cpu, seconds, rss)
	sum, seconds := resources.Summarize(r.Samples), r.sampleSeconds()
	add("nginx", sum.NginxCPUPercent/100*seconds, seconds, sum.NginxRSSMax)
	add("backend", sum.BackendCPUPercent/100*seconds, seconds, sum.BackendRSSMax)
	return t
}

// sampleSeconds returns the time from the first to the last sample.
func (r *Run) sampleSeconds() float64 {
	if len(r.Samples) == 0 {
		return 0
	}
	return float64(r.Samples[len(r.Samples)-1].Unix - r.Samples[0].Unix)
}

// cpuMetric returns the CPU time of the service per request. Other programs hardly affect this time. ok is false if the
// time is unknown.
func (r *Run) cpuMetric(requests int64) (m verdict.Metric, ok bool) {
	sum := resources.Summarize(r.Samples)
	seconds := (sum.BackendCPUPercent + sum.NginxCPUPercent) / 100 * r.sampleSeconds()
	if seconds == 0 || requests == 0 {
		return m, false
	}
	return verdict.Metric{Name: "service CPU per request", Unit: "µs", Value: 1e6 * seconds / float64(requests)}, true
}

// cpuTable returns an empty table of the CPU of the processes by part of the run. Its note ends with note. Machine.row
// returns the rows.
func (r *Run) cpuTable(part, runners, note string) verdict.Table {
	cores := "the number of cores is unknown"
	if r.Cores > 0 {
		cores = "the machine has " + format.Count(r.Cores, "core") + ", which other programs may also use"
	}
	return newTable("CPU by "+part+", % of one core", cores+"; waited: time that threads of the runners waited for a core"+note,
		part+"|"+runners+"|nginx|backend|machine|waited|longest stall")
}

func (m Machine) row(name string) []string {
	if m.TooShort {
		return []string{name, "–", "–", "–", "–", "–", "–"}
	}
	cells := []string{name}
	for _, percent := range []float64{m.Runners, m.Nginx, m.Backend, m.Host, 100 * m.RunDelay} {
		cells = append(cells, fmt.Sprintf("%.0f", percent))
	}
	return append(cells, fmt.Sprintf("%d ms", m.Stall.Milliseconds()))
}
