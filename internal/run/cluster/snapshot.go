package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/sse-soak/sse-soak/internal/run/runners"
)

// pollInterval is the time between two polls of the cluster. Each poll reads the whole state, so a failed one loses
// nothing. A podWatch receives pods that end and are deleted between two polls.
const pollInterval = 2 * time.Second

// A Snapshot is the state of a run in the cluster at one moment.
type Snapshot struct {
	At          time.Time
	Deleted     bool   // the TestRun no longer exists
	Stage       string // stage that the operator reports; "error" ends the run
	Initializer Part
	Starter     Part
	Runners     []Part // by index, from 0 for runner 1
}

// A Part is one Job of a run and its pod. Either is nil if it does not exist.
type Part struct {
	Job    *batchv1.Job
	Pod    *corev1.Pod
	Last   *corev1.Pod // last known state of a pod that no longer exists; nil: unknown
	Paused *bool       // whether k6 waits to be started; nil: unknown
	Events []string    // warnings and Killing events about the Job, then about the pod, each oldest first; only of parts with a problem
	Log    string      // last error or last line of the output; only of parts with a problem whose container has ended
}

// Snapshot returns a snapshot of a run.
func (c *Client) Snapshot(ctx context.Context, namespace, name string, runners int) (s Snapshot, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	run, err := c.Dynamic.Resource(testRuns).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s.Deleted = true
	case err != nil:
		return s, fmt.Errorf("read the TestRun: %w", err)
	default:
		s.Stage, _, _ = unstructured.NestedString(run.Object, "status", "stage") // "" until the operator has processed the TestRun
	}
	s.Runners = make([]Part, runners)
	options := metav1.ListOptions{LabelSelector: selector(name)}
	jobs, err := c.BatchV1().Jobs(namespace).List(ctx, options)
	if err != nil {
		return s, fmt.Errorf("read the Jobs: %w", err)
	}
	for i := range jobs.Items {
		if p := s.part(name, jobs.Items[i].Name); p != nil {
			p.Job = &jobs.Items[i]
		}
	}
	pods, err := c.CoreV1().Pods(namespace).List(ctx, options)
	if err != nil {
		return s, fmt.Errorf("read the pods: %w", err)
	}
	for i := range pods.Items {
		if p := s.part(name, pods.Items[i].Labels["job-name"]); p != nil {
			p.Pod = &pods.Items[i]
		}
	}
	s.At = time.Now()
	return s, nil
}

// part returns the part of a Job in the snapshot; nil for a Job of another run.
func (s *Snapshot) part(run, job string) *Part {
	switch suffix, _ := strings.CutPrefix(job, run+"-"); suffix {
	case "initializer":
		return &s.Initializer
	case "starter":
		return &s.Starter
	default:
		for i := range s.Runners {
			if suffix == fmt.Sprint(i+1) {
				return &s.Runners[i]
			}
		}
	}
	return nil
}

// explain adds the events and the last output to a part with a problem. It ignores errors, because these details are
// only for display.
func (c *Client) explain(ctx context.Context, namespace string, p *Part) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var names []string
	if p.Job != nil {
		names = append(names, p.Job.Name)
	}
	if p.Pod != nil {
		names = append(names, p.Pod.Name)
	}
	for _, name := range names {
		list, err := c.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.name", name).String()})
		if err != nil {
			continue
		}
		slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
		for _, e := range list.Items {
			isRelevant := e.Type == corev1.EventTypeWarning || e.Reason == "Killing"
			if e.InvolvedObject.Name == name && isRelevant && !strings.HasPrefix(e.Message, "Readiness probe") { // a failed readiness probe ends no runner
				p.Events = append(p.Events, e.Reason+": "+e.Message)
			}
		}
	}
	if p.Pod != nil && terminatedState(p.Pod) != nil {
		tail := int64(50)
		if text, err := c.CoreV1().Pods(namespace).GetLogs(p.Pod.Name, &corev1.PodLogOptions{TailLines: &tail}).DoRaw(ctx); err == nil {
			p.Log = lastOutput(string(text))
		}
	}
}

// lastOutput returns the last error in the log of a container, or its last line. It returns "" if the API server
// returned an error message in place of the log, because the node no longer has it.
func lastOutput(log string) string {
	if strings.HasPrefix(log, "unable to retrieve container logs") {
		return ""
	}
	message, ok := runners.LastError(strings.NewReader(log))
	if !ok {
		text := strings.TrimSpace(log)
		message = text[strings.LastIndexByte(text, '\n')+1:]
	}
	return strings.Trim(message, `"`)
}
