package report

import (
	"fmt"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/sse-soak/sse-soak/internal/format"
)

// headroomMinSeconds is the minimum duration of the hold phase, in seconds, for an extrapolation.
const headroomMinSeconds = 60

// headroom returns CPU and memory per stream, and how many streams would fill a core. The section is empty if the hold
// phase was too short, if no stream opened, or without samples of memory.
func (s *pageBuilder) headroom() Section {
	out := Section{ID: "headroom", Title: "Headroom"}
	from, to := s.phases.holdRange(s.series)
	streams := s.v.Connections.Opened
	if seconds := int64(to-from) * s.series.step; seconds < headroomMinSeconds || streams == 0 {
		return out
	}
	t := Table{Note: "at most: maximum CPU of the run", Columns: Columns("process", "#CPU during the hold phase", "#at most", "#memory during the hold phase", "#CPU per 1,000 streams", "#memory per 1,000 streams", "#streams that fill one core")}
	for _, p := range []struct {
		name        string
		cpu, memory []float64
	}{
		{"backend", s.series.backendCPU, s.series.backendRSS},
		{"nginx", s.series.nginxCPU, s.series.nginxRSS},
		{"runners, all", s.series.runnerCPU, s.series.runnerRSS},
	} {
		cpu, rss := stats.Mean(numbersOf(p.cpu, from, to)), stats.Mean(numbersOf(p.memory, from, to))
		if len(numbersOf(p.memory, from, to)) == 0 {
			continue
		}
		maximum := "–"
		if values := numbersOf(p.cpu, 0, len(p.cpu)); len(values) > 0 {
			maximum = format.Percent(slices.Max(values))
		}
		base, fill := rise(p.memory, from, rss), "–"
		if cpu > 0 {
			fill = roundTwoDigits(100 / cpu * float64(streams))
		}
		t.Rows = append(t.Rows, Cells(p.name, format.Percent(cpu), maximum, format.MiB(rss), format.Percent(1000*cpu/float64(streams)),
			format.MiB(1000*base/float64(streams)), fill))
	}
	if len(t.Rows) == 0 {
		return out
	}
	out.Tables = []Table{t}
	if busy := stats.Mean(numbersOf(s.series.hostCPU, from, to)); busy > 0 {
		sentence := fmt.Sprintf("During the hold phase, the CPU of %s was %s busy, other programs included", hostName(s.Provenance), format.Percent(busy))
		if free := numbersOf(s.series.available, from, to); len(free) > 0 {
			sentence += fmt.Sprintf("; at least %s of memory was free", format.MiB(slices.Min(free)))
		}
		out.Lead = []string{sentence + "."}
	}
	out.Notes = []string{"This is a linear extrapolation from one load. Memory per stream excludes the memory that the process used before the first stream. Verify the figures with a run at twice the load."}
	return out
}

// rise returns the mean memory of the hold phase minus the memory of the first sample. Without a lower sample at the
// start of the run, it returns the mean itself.
func rise(values []float64, holdStart int, mean float64) float64 {
	if first := numbersOf(values, 0, min(holdStart, 2)); len(first) > 0 && first[0] < mean {
		return mean - first[0]
	}
	return mean
}

func hostName(c Provenance) string {
	if c.ResourcesFrom != "" {
		return "the machines in Prometheus"
	}
	return "this machine"
}

// roundTwoDigits rounds a number to two significant digits, the precision of an extrapolation.
func roundTwoDigits(v float64) string {
	unit := 1
	for v/float64(unit) >= 100 {
		unit *= 10
	}
	return "≈ " + format.Thousands(int(v/float64(unit)+.5)*unit)
}
