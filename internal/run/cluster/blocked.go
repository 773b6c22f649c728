package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// causeWithin is how long a cause that does not pass by itself may keep a run from starting, before it is named.
	causeWithin = 25 * time.Second
	// podWithin is how long a Job may have no pod before the cluster is asked why.
	podWithin = 10 * time.Second
)

// permanent are the reasons of a waiting container that do not pass by themselves.
var permanent = []string{"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}

// cause returns what keeps a part from running and does not pass by itself, "" if nothing is known.
func (p *Part) cause() string {
	if p.Pod != nil {
		why := waiting(p.Pod)
		word, _, _ := strings.Cut(why, ":")
		if slices.Contains(permanent, word) {
			return why
		}
		return ""
	}
	for _, event := range slices.Backward(p.Events) {
		if strings.HasPrefix(event, "FailedCreate: ") { // a quota, or a policy of the namespace
			return event
		}
	}
	return ""
}

// blocked names a cause that has kept the run from starting for causeWithin, once. It ends the run unless the user chose how long to
// wait.
func (m *Tracker) blocked(s Snapshot) {
	cause := ""
	m.blockedBy = ""
	consider := func(name string, p *Part) {
		if p.Pod != nil && m.blockedBy == "" {
			if why := waiting(p.Pod); why != "" {
				m.blockedBy = fmt.Sprintf("the %s (%s) has not started: %s", name, location(p.Pod), why)
			}
		}
		if why := p.cause(); cause == "" && why != "" {
			cause = fmt.Sprintf("the %s (%s) cannot start: %s", name, location(p.Pod), why)
		}
	}
	consider("initializer", &s.Initializer)
	for i := range s.Runners {
		consider(fmt.Sprintf("runner %d", i+1), &s.Runners[i])
	}
	consider("starter", &s.Starter)
	if m.phase == Initializing && s.Stage == "" && s.Initializer.Job == nil {
		cause = "the k6-operator has not processed the TestRun; check that it runs: kubectl get pods -n " + operatorNamespace
	}
	m.blockedBy = cmp.Or(cause, m.blockedBy)
	switch {
	case cause == "":
		m.blockedSince, m.reported = time.Time{}, false
	case m.blockedSince.IsZero():
		m.blockedSince = s.At
	case m.reported || s.At.Sub(m.blockedSince) < causeWithin:
	case m.limits.Patient:
		m.reported = true
		m.news = append(m.news, cause+"; waiting for up to "+m.limits.Start.String())
	default:
		m.giveUp("%s", cause)
	}
}

// Interrupt notes the cause that kept the run from starting until the user ended it, if one is known.
func (m *Tracker) Interrupt() {
	if m.phase < Running && !m.GivenUp && m.blockedBy != "" {
		m.ended(0, "%s", m.blockedBy)
	}
}
