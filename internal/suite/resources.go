package suite

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// resourceTables are what every process took: in all, over all requests, and in the stages shown.
func (r *Run) resourceTables(every, shown []StageResult) []verdict.Table {
	sum := resources.Summarize(r.Samples)
	var rss uint64
	var cpu, seconds, sampled float64
	for _, m := range r.Rounds {
		for _, runner := range m.Runners {
			rss = max(rss, runner.RSSMax)
			cpu += runner.CPUSeconds
		}
		if len(m.Runners) > 0 {
			seconds += float64(m.Runners[0].EndedUS-m.Runners[0].StartedUS) / 1e6
		}
	}
	if n := len(r.Samples); n > 1 {
		sampled = float64(r.Samples[n-1].Unix - r.Samples[0].Unix)
	}
	requests := total(every).Total()
	all := verdict.Table{
		Title: "Processes", Note: "each: all CPU of the run over all of its requests, start and idling included",
		Columns: []string{"process", "CPU of a core", "CPU each", "memory at most"},
	}
	process := func(name string, percent, seconds float64, rss uint64) {
		each := "–"
		if requests > 0 {
			each = format.Thousands(int64(1e6*percent/100*seconds/float64(requests)+.5)) + " µs"
		}
		all.Add(name, fmt.Sprintf("%.1f %%", percent), each, format.Bytes(rss))
	}
	if seconds > 0 {
		process("runners, together", 100*cpu/seconds, seconds, rss)
	}
	if sum.NginxRSSMax > 0 {
		process("nginx", sum.NginxCPUPercent, sampled, sum.NginxRSSMax)
	}
	if sum.BackendRSSMax > 0 {
		process("backend", sum.BackendCPUPercent, sampled, sum.BackendRSSMax)
	}
	by := r.cpuTable("stage", "runners", "; –: the stage was over within two seconds")
	for _, st := range shown {
		if st.Total() > 0 {
			by.Rows = append(by.Rows, st.Machine.row(st.Title))
		}
	}
	if r.ServiceCores == 0 {
		return []verdict.Table{all, by}
	}
	return []verdict.Table{all, by, r.coresTable(shown)}
}

// coresTable is how busy the cores of each side were, where each has cores of its own.
func (r *Run) coresTable(shown []StageResult) verdict.Table {
	t := verdict.Table{
		Title: "Busy cores",
		Note: fmt.Sprintf("the service and the runners have %s and %s of their own; the side whose cores were full, %.0f %% or more, was the limit, of two the fuller one",
			format.Count(r.ServiceCores, "core"), format.Count(r.RunnerCores, "core"), 100*machineFull),
		Columns: []string{"stage", "service", "generator", "limit"},
	}
	for _, st := range shown {
		service, generator := fmt.Sprintf("%.0f %%", 100*st.Machine.ServiceBusy), fmt.Sprintf("%.0f %%", 100*st.Machine.GeneratorBusy)
		if st.Machine.Short {
			service, generator = "–", "–"
		}
		if limit, _ := st.Machine.Limit(); st.Total() > 0 {
			t.Add(st.Title, service, generator, string(limit))
		}
	}
	return t
}

// cost is what a request took of the service's CPU, nginx included, to be compared with other runs. Whatever else works on the
// machine makes a rate lower, and hardly this. It is not known of a service that shows no CPU.
func (r *Run) cost(requests int64) (m verdict.Metric, ok bool) {
	var seconds float64
	for i := range r.Samples {
		if i > 0 { // a counter that falls is of a new process
			seconds += max(r.Samples[i].BackendCPU-r.Samples[i-1].BackendCPU, 0) + max(r.Samples[i].NginxCPU-r.Samples[i-1].NginxCPU, 0)
		}
	}
	if seconds == 0 || requests == 0 {
		return m, false
	}
	return verdict.Metric{Name: "service CPU per request", Unit: "µs", Value: 1e6 * seconds / float64(requests)}, true
}

// cpuTable is what the processes took by some part of the run; row fills it.
func (r *Run) cpuTable(part, runners, more string) verdict.Table {
	return verdict.Table{
		Title:   "CPU by " + part + ", % of one core",
		Note:    fmt.Sprintf("the machine has %d cores, and others may work on it; waited: the runners' threads, for a core%s", r.Cores, more),
		Columns: []string{part, runners, "nginx", "backend", "machine", "waited", "longest stall"},
	}
}

func (m Machine) row(name string) []string {
	if m.Short {
		return []string{name, "–", "–", "–", "–", "–", "–"}
	}
	return []string{
		name, percentPoints(m.Runners), percentPoints(m.Nginx), percentPoints(m.Backend), percentPoints(m.Host), percentPoints(100 * m.RunDelay),
		fmt.Sprintf("%d ms", m.Stall.Milliseconds()),
	}
}

func percentPoints(v float64) string { return fmt.Sprintf("%.0f", v) }
