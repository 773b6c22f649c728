package cluster

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A logKeeper follows the logs of a run's pods into files: those of a pod that is deleted cannot be
// had afterwards.
type logKeeper struct {
	client    *Client
	namespace string
	dir       string
	ctx       context.Context
	stop      context.CancelFunc

	mu        sync.Mutex
	following map[string]bool // by pod
	running   sync.WaitGroup
}

func newLogKeeper(c *Client, namespace, dir string) *logKeeper {
	k := &logKeeper{client: c, namespace: namespace, dir: dir, following: map[string]bool{}}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// follow starts to store the logs of all pods of the snapshot that have started.
func (k *logKeeper) follow(run string, s Snapshot) {
	for _, p := range append([]Part{s.Initializer, s.Starter}, s.Runners...) {
		if p.Pod == nil || p.Pod.Status.Phase == corev1.PodPending || p.Job == nil {
			continue
		}
		part := strings.TrimPrefix(p.Job.Name, run+"-")
		if part[0] >= '0' && part[0] <= '9' {
			part = "runner-" + part
		}
		k.followPod(p.Pod.Name, filepath.Join(k.dir, "k6-"+part+".log"))
	}
}

func (k *logKeeper) followPod(pod, path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.following[pod] || k.ctx.Err() != nil {
		return
	}
	k.following[pod] = true
	k.running.Go(func() {
		if k.copy(pod, path) != nil { // the next look tries again, from the beginning
			k.mu.Lock()
			delete(k.following, pod)
			k.mu.Unlock()
		}
	})
}

func (k *logKeeper) copy(pod, path string) error {
	from, err := k.client.CoreV1().Pods(k.namespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(k.ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(path) // #nosec G304 -- in the run's folder; not earlier, to keep the log of a pod that is gone
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if closed := to.Close(); err == nil {
		err = closed
	}
	return err
}

// finish waits until all logs are complete, but not longer than timeout.
func (k *logKeeper) finish(timeout time.Duration) {
	done := make(chan struct{})
	go func() { k.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(timeout):
	}
	k.stop()
	<-done
}
