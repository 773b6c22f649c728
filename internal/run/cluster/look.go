package cluster

import (
	"bytes"
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

// lookEvery is the time between two polls of the cluster. Each poll reads the whole state, so a failed one loses nothing.
// A podWatch sees pods that end and vanish between two polls.
const lookEvery = 2 * time.Second

// A Snapshot is what the cluster shows of a run at one moment.
type Snapshot struct {
	At          time.Time
	Deleted     bool   // there is no TestRun any more
	Stage       string // the operator's word, which is no verdict
	Initializer Part
	Starter     Part
	Runners     []Part // by index, from 0 for runner 1
}

// A Part is one Job of a run and its pod. Either is nil while, or when, it is not there.
type Part struct {
	Job    *batchv1.Job
	Pod    *corev1.Pod
	Last   *corev1.Pod // how a pod that is gone was last seen, if it was
	Paused *bool       // what k6 says of itself; nil: not known
	Events []string    // what the cluster said of it, the last ones; only looked up when something is wrong
	Log    string      // the last error that it printed; only looked up when it failed
}

// Look returns a snapshot of a run.
func (c *Client) Look(ctx context.Context, namespace, name string, runners int) (s Snapshot, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	run, err := c.Dynamic.Resource(testRuns).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s.Deleted = true
	case err != nil:
		return s, fmt.Errorf("read the TestRun: %w", err)
	default:
		s.Stage, _, _ = unstructured.NestedString(run.Object, "status", "stage") // "" until the operator has seen it
	}
	s.Runners = make([]Part, runners)
	ours := metav1.ListOptions{LabelSelector: selector(name)}
	jobs, err := c.BatchV1().Jobs(namespace).List(ctx, ours)
	if err != nil {
		return s, fmt.Errorf("read the Jobs: %w", err)
	}
	for i := range jobs.Items {
		if p := s.part(name, jobs.Items[i].Name); p != nil {
			p.Job = &jobs.Items[i]
		}
	}
	pods, err := c.CoreV1().Pods(namespace).List(ctx, ours)
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

// part is where a Job is in the snapshot, nil if it is not one of the run's.
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

// explain looks up what the cluster and the container itself say of a part in trouble. It is for
// messages only: if that fails, the part stays as it is.
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
			isNews := e.Type == corev1.EventTypeWarning || e.Reason == "Killing"
			if e.InvolvedObject.Name == name && isNews && !strings.HasPrefix(e.Message, "Readiness probe") { // which ends no runner
				p.Events = append(p.Events, e.Reason+": "+e.Message)
			}
		}
	}
	if p.Pod != nil && terminated(p.Pod) != nil {
		tail := int64(50)
		if text, err := c.CoreV1().Pods(namespace).GetLogs(p.Pod.Name, &corev1.PodLogOptions{TailLines: &tail}).DoRaw(ctx); err == nil {
			message, ok := runners.LastError(bytes.NewReader(text))
			if !ok { // its last line, then
				all := strings.TrimSpace(string(text))
				message = all[strings.LastIndexByte(all, '\n')+1:]
			}
			p.Log = strings.Trim(message, `"`)
		}
	}
}
