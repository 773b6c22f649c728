package suite

import (
	"fmt"
	"slices"
	"time"

	"github.com/aclements/go-moremath/stats"
)

// A rounds is what one target did at one level, round by round, and in all: as if one round had followed the other at once.
type rounds struct {
	StageResult
	each []StageResult
}

// inRounds puts the stages of one target together by requests at a time, in their order.
func inRounds(stages []StageResult) (out []rounds) {
	for _, st := range stages {
		i := slices.IndexFunc(out, func(r rounds) bool { return r.Concurrency == st.Concurrency })
		if i < 0 {
			i, out = len(out), append(out, rounds{})
			out[i].Stage = st.Stage
		}
		out[i].each = append(out[i].each, st)
	}
	for i := range out {
		out[i].sum()
	}
	return out
}

// sum adds the rounds up. The machine is as it was in most of them.
func (r *rounds) sum() {
	stage := r.Stage
	r.StageResult = StageResult{Stage: stage, Requests: total(r.each).Requests}
	r.Title = fmt.Sprintf("%d at a time, %s", stage.Concurrency, stage.Target)
	r.First = r.each[0].First
	r.Last = r.First
	var machines []Machine
	r.Stage.Requests, r.Seconds = 0, 0
	for _, st := range r.each {
		r.Last = r.Last.Add(st.Last.Sub(st.First))
		r.Stage.Requests += st.Stage.Requests
		r.Seconds += st.Seconds
		r.Dropped += st.Dropped
		r.Bytes += st.Bytes
		r.Sent += st.Sent
		r.Excused += st.Excused
		r.ExcusedDropped += st.ExcusedDropped
		r.seconds = append(r.seconds, st.seconds...)
		machines = append(machines, st.Machine)
	}
	r.Machine = typical(machines)
}

// values are a figure of each round.
func (r *rounds) values(of func(*StageResult) float64) (out []float64) {
	for i := range r.each {
		out = append(out, of(&r.each[i]))
	}
	return out
}

// typical has the median of each figure, of those rounds that were long enough to have them; too short is what most were. What
// happened in one round says nothing of the others, and what it did to the round widens the interval.
func typical(all []Machine) Machine {
	known := slices.DeleteFunc(slices.Clone(all), func(m Machine) bool { return m.Short })
	if 2*len(known) <= len(all) {
		return Machine{Short: true, Apart: all[0].Apart, Cores: all[0].Cores, Shared: all[0].Shared}
	}
	of := func(value func(Machine) float64) float64 {
		var values []float64
		for _, m := range known {
			values = append(values, value(m))
		}
		return stats.Sample{Xs: values}.Quantile(.5)
	}
	took := func(value func(Machine) time.Duration) time.Duration {
		return time.Duration(of(func(m Machine) float64 { return float64(value(m)) }))
	}
	most := func(is func(Machine) bool) bool {
		return 2*len(slices.DeleteFunc(slices.Clone(known), func(m Machine) bool { return !is(m) })) > len(known)
	}
	m := known[0]
	m.Runners = of(func(m Machine) float64 { return m.Runners })
	m.Backend = of(func(m Machine) float64 { return m.Backend })
	m.Nginx = of(func(m Machine) float64 { return m.Nginx })
	m.Host = of(func(m Machine) float64 { return m.Host })
	m.Peak = of(func(m Machine) float64 { return m.Peak })
	m.RunDelay = of(func(m Machine) float64 { return m.RunDelay })
	m.Dropped = of(func(m Machine) float64 { return m.Dropped })
	m.ServiceBusy = of(func(m Machine) float64 { return m.ServiceBusy })
	m.GeneratorBusy = of(func(m Machine) float64 { return m.GeneratorBusy })
	m.Stall = took(func(m Machine) time.Duration { return m.Stall })
	m.Wait = took(func(m Machine) time.Duration { return m.Wait })
	m.Control = took(func(m Machine) time.Duration { return m.Control })
	m.Controlled = most(func(m Machine) bool { return m.Controlled })
	m.Foreign = most(func(m Machine) bool { return m.Foreign })
	return m
}
