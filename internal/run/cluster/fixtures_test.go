package cluster

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const runName = "soak-t"

func testLimits() Limits {
	return Limits{Start: time.Minute, Run: 10 * time.Minute, Unreachable: time.Minute, PollInterval: time.Millisecond}
}

func pod(job string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: job + "-x7", Namespace: "ns", Labels: map[string]string{"app": "k6", "k6_cr": runName, "job-name": job}},
		Spec: corev1.PodSpec{NodeName: "node-a", Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func setUnscheduled(p *corev1.Pod) {
	p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient memory."}}
}

func setNoImage(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image "sse-soak/k6:none"`}}}}
}

func setExited(code int32, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			p.Status.Phase = corev1.PodFailed
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}}
	}
}

func setDeleting(p *corev1.Pod) {
	grace := int64(30)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: noon.Add(30 * time.Second)}, &grace
}

func setEvicted(p *corev1.Pod) {
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
}

func setDrained(p *corev1.Pod) {
	setDeleting(p)
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting"})
}

func job(name string, condition batchv1.JobConditionType) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{"app": "k6", "k6_cr": runName}}}
	if condition != "" {
		j.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"}}
	}
	return j
}

func part(name string, condition batchv1.JobConditionType, change ...func(*corev1.Pod)) Part {
	return Part{Job: job(name, condition), Pod: pod(name, change...)}
}

// snapshot returns a state of a run with three runners, by the name of the state.
func snapshot(name string) Snapshot {
	s := Snapshot{At: noon, Stage: "started", Runners: make([]Part, 3)}
	unpaused, paused := false, true
	fill := func(paused *bool) {
		s.Initializer = part(runName+"-initializer", batchv1.JobComplete, setExited(0, "Completed"))
		for i := range s.Runners {
			s.Runners[i] = part(fmt.Sprintf("%s-%d", runName, i+1), "")
			s.Runners[i].Paused = paused
		}
	}
	switch name {
	case "new":
		s.Stage = ""
	case "initializing":
		s.Stage = "initialization"
		s.Initializer = part(runName+"-initializer", "")
	case "creating":
		s.Stage = "created"
		fill(nil)
		s.Runners[2].Pod = pod(runName+"-3", setUnscheduled)
	case "no pod":
		fill(nil)
		s.Runners[2].Pod = nil
	case "starting":
		fill(nil)
		s.Starter = part(runName+"-starter", "")
	case "unpausing":
		fill(&paused)
		s.Starter = part(runName+"-starter", batchv1.JobComplete, setExited(0, "Completed"))
	case "running":
		fill(&unpaused)
		s.Starter = part(runName+"-starter", batchv1.JobComplete, setExited(0, "Completed"))
	case "finished":
		fill(nil)
		s.Starter = part(runName+"-starter", batchv1.JobComplete, setExited(0, "Completed"))
		for i := range s.Runners {
			s.Runners[i] = part(fmt.Sprintf("%s-%d", runName, i+1), batchv1.JobComplete, setExited(0, "Completed"))
		}
	}
	return s
}
