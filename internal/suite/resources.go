package suite

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// resourceTables are what every process took: in all, and by stage.
func (r *Run) resourceTables(stages []StageResult) []verdict.Table {
	sum := resources.Summarize(r.Samples)
	var rss uint64
	var cpu, seconds float64
	for _, m := range r.Rounds {
		for _, runner := range m.Runners {
			rss = max(rss, runner.RSSMax)
			cpu += runner.CPUSeconds
		}
		if len(m.Runners) > 0 {
			seconds += float64(m.Runners[0].EndedUS-m.Runners[0].StartedUS) / 1e6
		}
	}
	var sampled float64
	if n := len(r.Samples); n > 1 {
		sampled = float64(r.Samples[n-1].Unix - r.Samples[0].Unix)
	}
	requests := r.sumOf(func(shard.Stage, map[string]string) bool { return true }).Total()
	all := verdict.Table{
		Title: "Processes", Note: "each: all CPU of the run over all of its requests, start and idling included",
		Columns: []string{"process", "CPU of a core", "CPU each", "memory at most"},
	}
	if seconds > 0 {
		all.Rows = append(all.Rows, []string{"runners, together", fmt.Sprintf("%.1f %%", 100*cpu/seconds), each(cpu, requests), mib(rss)})
	}
	if sum.NginxRSSMax > 0 {
		all.Rows = append(all.Rows, []string{"nginx", fmt.Sprintf("%.1f %%", sum.NginxCPUPercent), each(sum.NginxCPUPercent/100*sampled, requests), mib(sum.NginxRSSMax)})
	}
	if sum.BackendRSSMax > 0 {
		all.Rows = append(all.Rows, []string{"backend", fmt.Sprintf("%.1f %%", sum.BackendCPUPercent), each(sum.BackendCPUPercent/100*sampled, requests), mib(sum.BackendRSSMax)})
	}
	by := verdict.Table{
		Title:   "CPU by stage, % of one core",
		Note:    fmt.Sprintf("the machine has %d cores, and others may work on it; waited: the runners' threads, for a core; – is for what was over in two seconds", r.Cores),
		Columns: []string{"stage", "runners", "nginx", "backend", "machine", "waited", "longest stall"},
	}
	for _, st := range stages {
		if st.Total() == 0 {
			continue
		}
		m := st.Machine
		if m.Short {
			by.Rows = append(by.Rows, []string{st.Title, "–", "–", "–", "–", "–", "–"})
			continue
		}
		by.Rows = append(by.Rows, []string{
			st.Title, percentPoints(m.Runners), percentPoints(m.Nginx), percentPoints(m.Backend), percentPoints(m.Host),
			percentPoints(100 * m.RunDelay), fmt.Sprintf("%d ms", m.Stall.Milliseconds()),
		})
	}
	return []verdict.Table{all, by}
}

// each is the CPU time of a request in microseconds.
func each(seconds float64, requests int64) string {
	if requests == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f µs", 1e6*seconds/float64(requests))
}

func percentPoints(v float64) string { return fmt.Sprintf("%.0f", v) }

func mib(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
