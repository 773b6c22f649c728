package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sse-soak/sse-soak/internal/run/runners"
)

// terminatedState returns the final state of the container of a pod; nil if the container has not ended.
func terminatedState(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			return c.State.Terminated
		}
	}
	return nil
}

// waitReason returns the reason why a pod waits; "" if it does not wait.
func waitReason(pod *corev1.Pod) string {
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			return reason(w.Reason, w.Message)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return reason("no node accepts it: "+c.Reason, c.Message)
		}
	}
	if pod.Status.Phase == corev1.PodPending {
		return "its container is being created"
	}
	return ""
}

func reason(word, message string) string {
	if message == "" {
		return word
	}
	return word + ": " + strings.TrimSuffix(strings.TrimSpace(message), ".")
}

func location(pod *corev1.Pod) string {
	if pod == nil {
		return "no pod"
	}
	if pod.Spec.NodeName == "" {
		return fmt.Sprintf("pod %s, on no node", pod.Name)
	}
	return fmt.Sprintf("pod %s on node %s", pod.Name, pod.Spec.NodeName)
}

// condition returns the first true condition of a Job with one of the types, or nil. job may be nil.
func condition(job *batchv1.Job, types ...batchv1.JobConditionType) *batchv1.JobCondition {
	if job == nil {
		return nil
	}
	i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return slices.Contains(types, c.Type) && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &job.Status.Conditions[i]
}

// jobFailure returns why a Job failed; ok is false unless it failed permanently.
func jobFailure(job *batchv1.Job) (cause string, ok bool) {
	if c := condition(job, batchv1.JobFailed, batchv1.JobFailureTarget); c != nil {
		return reason(c.Reason, c.Message), true
	}
	return "", false
}

func isComplete(job *batchv1.Job) bool {
	return condition(job, batchv1.JobComplete) != nil || job != nil && job.Status.Succeeded > 0
}

// graceSlack is how long a deleted pod may exist after its grace period before its node counts as dead.
const graceSlack = 30 * time.Second

// end reports whether a part has ended, and returns a sentence if the part failed. latest is the last known state of a
// pod that no longer exists; nil if unknown.
func (p *Part) end(latest *corev1.Pod, at time.Time) (problem string, hasEnded bool) {
	pod := p.Pod
	if pod == nil {
		reason, failed := jobFailure(p.Job)
		switch {
		case isComplete(p.Job):
			return "", true
		case latest == nil && !failed:
			return "", false // the pod was not created yet
		case latest == nil:
			return reason, true
		case terminatedState(latest) != nil || latest.DeletionTimestamp != nil:
			return podFailure(latest), true
		}
		return "its pod is gone: the pod or its node was deleted", true
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed, terminatedState(pod) != nil:
		return podFailure(pod), true
	case pod.DeletionTimestamp != nil && at.Sub(pod.DeletionTimestamp.Time) > graceSlack:
		return podFailure(pod) + ", and its node has not reported its end", true
	}
	return "", false
}

// podFailure returns why a pod failed; "" if it did not. A completed pod may later be evicted, or deleted by another
// soak process that is attached to the run. Neither is a failure.
func podFailure(pod *corev1.Pod) string {
	end := terminatedState(pod)
	detail := ""
	if end != nil {
		if end.ExitCode == 0 || end.ExitCode == runners.ThresholdsFailed {
			return ""
		}
		detail = fmt.Sprintf(" (exit code %d)", end.ExitCode)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return "it was evicted: " + reason(c.Reason, c.Message) + detail
		}
	}
	switch {
	case pod.Status.Reason != "":
		return "it was terminated: " + reason(pod.Status.Reason, pod.Status.Message) + detail
	case end != nil && end.Reason == "OOMKilled":
		return fmt.Sprintf("it ran out of memory (OOMKilled); its limit is %s; raise the limit, or the number of runners", memoryLimit(pod))
	case pod.DeletionTimestamp != nil:
		return fmt.Sprintf("its pod was deleted at %s UTC%s", deletedAt(pod).UTC().Format(time.TimeOnly), detail)
	case end == nil && pod.Status.Phase == corev1.PodFailed:
		return "it failed"
	case end == nil:
		return ""
	case end.Signal != 0:
		return fmt.Sprintf("it was killed by signal %d", end.Signal)
	}
	return fmt.Sprintf("it ended with exit code %d", end.ExitCode)
}

// deletedAt returns when the deletion was requested. DeletionTimestamp is the end of the grace period.
func deletedAt(pod *corev1.Pod) time.Time {
	grace := time.Duration(0)
	if g := pod.DeletionGracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	return pod.DeletionTimestamp.Add(-grace)
}

func memoryLimit(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if q, ok := c.Resources.Limits[corev1.ResourceMemory]; ok {
			return q.String()
		}
	}
	return "the node's memory"
}
