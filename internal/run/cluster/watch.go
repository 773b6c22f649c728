package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A podWatch keeps the last state of each pod of a run. If a pod ends and is deleted between two snapshots, only the
// watch receives the cause of its end.
type podWatch struct {
	client         *Client
	namespace, run string

	mu   sync.Mutex
	last map[string]*corev1.Pod // by Job
}

func (w *podWatch) open(ctx context.Context) (watch.Interface, error) {
	return w.client.CoreV1().Pods(w.namespace).Watch(ctx, metav1.ListOptions{LabelSelector: selector(w.run)})
}

// follow handles the events of the watch until ctx ends. It reopens a broken watch after a pause. first may be nil.
func (w *podWatch) follow(ctx context.Context, first watch.Interface, pause time.Duration) {
	for open := first; ctx.Err() == nil; open, _ = w.open(ctx) {
		if open != nil {
			w.read(ctx, open)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (w *podWatch) read(ctx context.Context, events watch.Interface) {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-events.ResultChan():
			if !ok {
				return
			}
			if pod, isPod := event.Object.(*corev1.Pod); isPod {
				w.store(pod.DeepCopy(), event.Type == watch.Deleted)
			}
		}
	}
}

// store stores the state of a pod. A deleted pod without a time of deletion gets the current time.
func (w *podWatch) store(pod *corev1.Pod, deleted bool) {
	if deleted && pod.DeletionTimestamp == nil {
		now := metav1.Now()
		pod.DeletionTimestamp = &now
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[pod.Labels["job-name"]] = pod
}

func (w *podWatch) knownNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.last))
}

// fill sets the last state of parts whose pod no longer exists, for the Jobs that were known before the snapshot. The
// pod of any other Job may have been created after the snapshot.
func (w *podWatch) fill(s *Snapshot, known []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, job := range known {
		if p := s.part(w.run, job); p != nil && p.Pod == nil {
			p.Last = w.last[job]
		}
	}
}
