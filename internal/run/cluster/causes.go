package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// causeTimeout is how long a permanent cause may prevent the start of a run before it is reported.
	causeTimeout = 25 * time.Second
	// podTimeout is how long a Job may have no pod before the events of the cluster are read.
	podTimeout = 10 * time.Second
)

// permanentReasons lists the reasons of a waiting container that do not resolve by themselves.
var permanentReasons = []string{"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}

// cause returns the permanent reason why a part does not run, "" if there is none.
func (p *Part) cause() string {
	if p.Pod != nil {
		reason := waitReason(p.Pod)
		word, _, _ := strings.Cut(reason, ":")
		if slices.Contains(permanentReasons, word) {
			return reason
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

// checkBlocked ends the run if a permanent cause has prevented its start for causeTimeout. If the user chose the time
// limit of the start, it reports the cause once instead.
func (m *Tracker) checkBlocked(s Snapshot) {
	cause := ""
	m.blockedBy = ""
	consider := func(name string, p *Part) {
		if p.Pod != nil && m.blockedBy == "" {
			if reason := waitReason(p.Pod); reason != "" {
				m.blockedBy = fmt.Sprintf("the %s (%s) has not started: %s", name, location(p.Pod), reason)
			}
		}
		if reason := p.cause(); cause == "" && reason != "" {
			cause = fmt.Sprintf("the %s (%s) cannot start: %s", name, location(p.Pod), reason)
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
	case m.reported || s.At.Sub(m.blockedSince) < causeTimeout:
	case m.limits.ExplicitStart:
		m.reported = true
		m.news = append(m.news, cause+"; waiting for up to "+m.limits.Start.String())
	default:
		m.fail("%s", cause)
	}
}

// Interrupt records why the run had not started when the user stopped it, if a reason is known.
func (m *Tracker) Interrupt() {
	if m.phase < Running && !m.Failed && m.blockedBy != "" {
		m.recordEnd(0, "%s", m.blockedBy)
	}
}
