package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Suspects returns at most five parts that the next Advance may report as failed or stuck. The caller adds their events
// and logs. Suspects also stores the newest states of the pods of the runners.
func (m *Tracker) Suspects(s Snapshot) (out []*Part) {
	const maxSuspects = 5
	late := s.At.Sub(m.since) > m.limit()
	consider := func(p *Part, latest *corev1.Pod) {
		trouble, hasEnded := p.end(latest, s.At)
		noPod := m.phase < Running && p.Job != nil && p.Pod == nil && s.At.Sub(m.since) > podTimeout
		if len(out) < maxSuspects && (hasEnded && trouble != "" || !hasEnded && (late || noPod)) {
			out = append(out, p)
		}
	}
	for i := range m.runners {
		if r := &m.runners[i]; !r.hasEnded {
			r.update(&s.Runners[i])
			consider(&s.Runners[i], r.pod)
		}
	}
	if m.phase < Running {
		consider(&s.Initializer, nil)
		consider(&s.Starter, nil)
	}
	return out
}

// timeOut ends the run, because parts did not finish the phase in time. It records each of them with the reason of its
// wait.
func (m *Tracker) timeOut(s Snapshot) {
	limit := m.limit()
	report := func(name string, p *Part, fallback string) {
		reason := fallback
		if p.Pod != nil {
			if w := waitReason(p.Pod); w != "" {
				reason = w
			}
		}
		m.fail("the phase %q took over %v: the %s (%s) is stuck: %s%s", m.phase, limit, name, location(p.Pod), reason, p.details())
	}
	switch m.phase {
	case Initializing:
		if s.Initializer.Job == nil {
			m.fail("the operator made no progress for %v (stage %q); check that it runs: kubectl get pods -n k6-operator-system", limit, s.Stage)
			return
		}
		report("initializer", &s.Initializer, "it does not end")
	case Creating, Running:
		for i := range m.runners {
			if p := &s.Runners[i]; !m.runners[i].hasEnded && (m.phase == Running || p.Pod == nil || p.Pod.Status.Phase != corev1.PodRunning) {
				report(fmt.Sprintf("runner %d", i+1), p, map[bool]string{true: "it does not end", false: "the operator created no pod"}[m.phase == Running])
			}
		}
	case Starting:
		if !m.isStarted(s) {
			report("starter", &s.Starter, "the operator started no runner; it may not reach port 6565 of all runners")
		}
		for i := range m.runners {
			if p := &s.Runners[i]; m.isStarted(s) && !m.runners[i].hasEnded && (p.Paused == nil || *p.Paused) {
				report(fmt.Sprintf("runner %d", i+1), p, map[bool]string{true: "it is still paused although the starter has ended", false: "k6's REST API does not answer"}[p.Paused != nil])
			}
		}
	case Ended:
	}
}
