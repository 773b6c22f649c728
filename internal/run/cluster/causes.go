package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Suspects returns at most five parts that the next Advance may report as failed or stuck. The caller adds their events
// and logs. Suspects also stores the newest states of the pods of the runners.
func (t *Tracker) Suspects(s Snapshot) (out []*Part) {
	const maxSuspects = 5
	late := s.At.Sub(t.since) > t.limit()
	consider := func(p *Part, latest *corev1.Pod) {
		problem, hasEnded := p.end(latest, s.At)
		noPod := t.phase < Running && p.Job != nil && p.Pod == nil && s.At.Sub(t.since) > podTimeout
		if len(out) < maxSuspects && (hasEnded && problem != "" || !hasEnded && (late || noPod)) {
			out = append(out, p)
		}
	}
	for i := range t.runners {
		if r := &t.runners[i]; !r.hasEnded {
			r.update(&s.Runners[i])
			consider(&s.Runners[i], r.pod)
		}
	}
	if t.phase < Running {
		consider(&s.Initializer, nil)
		consider(&s.Starter, nil)
	}
	return out
}

// timeOut ends the run, because parts did not finish the phase in time. It records each of these parts with the reason
// for its wait.
func (t *Tracker) timeOut(s Snapshot) {
	limit := t.limit()
	report := func(name string, p *Part, fallback string) {
		reason := fallback
		if p.Pod != nil {
			if w := waitReason(p.Pod); w != "" {
				reason = w
			}
		}
		t.fail("the phase %q lasted longer than %v: %s (%s) is stuck: %s%s", t.phase, limit, name, location(p.Pod), reason, p.details())
	}
	switch t.phase {
	case Initializing:
		if s.Initializer.Job == nil {
			t.fail("the operator made no progress for %v (stage %q); check that it runs: kubectl get pods -n k6-operator-system", limit, s.Stage)
			return
		}
		report("the initializer", &s.Initializer, "it has not ended")
	case Creating, Running:
		for i := range t.runners {
			if p := &s.Runners[i]; !t.runners[i].hasEnded && (t.phase == Running || p.Pod == nil || p.Pod.Status.Phase != corev1.PodRunning) {
				report(fmt.Sprintf("runner %d", i+1), p, map[bool]string{true: "it has not ended", false: "the operator created no pod"}[t.phase == Running])
			}
		}
	case Starting:
		if !t.isStarted(s) {
			report("the starter", &s.Starter, "the operator started no runner; check that it can reach port 6565 of each runner")
		}
		for i := range t.runners {
			if p := &s.Runners[i]; t.isStarted(s) && !t.runners[i].hasEnded && (p.Paused == nil || *p.Paused) {
				report(fmt.Sprintf("runner %d", i+1), p, map[bool]string{true: "it is still paused although the starter has ended", false: "k6's REST API does not answer"}[p.Paused != nil])
			}
		}
	case Ended:
	}
}

const (
	// causeTimeout is how long a permanent cause may prevent the start of a run before the cause is reported.
	causeTimeout = 25 * time.Second
	// podTimeout is how long a Job may have no pod before the events of the cluster are read.
	podTimeout = 10 * time.Second
)

// permanentReasons are the reasons for which a container waits until a user fixes the cause.
var permanentReasons = []string{"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}

// cause returns the permanent reason why a part does not run, or "".
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
// limit of the start, it reports the cause once instead. For Interrupt, it also stores the reason why the run has not
// started, even if that reason is temporary.
func (t *Tracker) checkBlocked(s Snapshot) {
	cause := ""
	t.blockedBy = ""
	consider := func(name string, p *Part) {
		if p.Pod != nil && t.blockedBy == "" {
			if reason := waitReason(p.Pod); reason != "" {
				t.blockedBy = fmt.Sprintf("%s (%s) has not started: %s", name, location(p.Pod), reason)
			}
		}
		if reason := p.cause(); cause == "" && reason != "" {
			cause = fmt.Sprintf("%s (%s) cannot start: %s", name, location(p.Pod), reason)
		}
	}
	consider("the initializer", &s.Initializer)
	for i := range s.Runners {
		consider(fmt.Sprintf("runner %d", i+1), &s.Runners[i])
	}
	consider("the starter", &s.Starter)
	if t.phase == Initializing && s.Stage == "" && s.Initializer.Job == nil {
		cause = "the k6-operator has not processed the TestRun; check that it runs: kubectl get pods -n " + operatorNamespace
	}
	t.blockedBy = cmp.Or(cause, t.blockedBy)
	switch {
	case cause == "":
		t.blockedSince, t.reported = time.Time{}, false
	case t.blockedSince.IsZero():
		t.blockedSince = s.At
	case t.reported || s.At.Sub(t.blockedSince) < causeTimeout:
	case t.limits.ExplicitStart:
		t.reported = true
		t.news = append(t.news, cause+"; waiting for up to "+t.limits.Start.String())
	default:
		t.fail("%s", cause)
	}
}

// Interrupt records why the run had not started when the user stopped it, if a reason is known.
func (t *Tracker) Interrupt() {
	if t.phase < Running && !t.Failed && t.blockedBy != "" {
		t.recordEnd(0, "%s", t.blockedBy)
	}
}
