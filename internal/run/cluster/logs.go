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

// A logKeeper copies the logs of a run's pods during the run, because the log of a deleted pod is lost.
type logKeeper struct {
	client    *Client
	namespace string
	dir       string
	ctx       context.Context
	stop      context.CancelFunc

	mu          sync.Mutex
	podsWithLog map[string]bool // pods whose log is being copied or is complete
	copiers     sync.WaitGroup
}

func newLogKeeper(c *Client, namespace, dir string) *logKeeper {
	k := &logKeeper{client: c, namespace: namespace, dir: dir, podsWithLog: map[string]bool{}}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

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

// followPod starts to copy the log of a pod, unless the log is already being copied or is complete, or finish was
// called.
func (k *logKeeper) followPod(pod, path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.podsWithLog[pod] || k.ctx.Err() != nil {
		return
	}
	k.podsWithLog[pod] = true
	k.copiers.Go(func() {
		if k.copy(pod, path) != nil { // the next snapshot tries again, from the beginning
			k.mu.Lock()
			delete(k.podsWithLog, pod)
			k.mu.Unlock()
		}
	})
}

func (k *logKeeper) copy(pod, path string) error {
	stream, err := k.client.CoreV1().Pods(k.namespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(k.ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	// The file is created only now, because os.Create truncates the log of an earlier pod at path.
	to, err := os.Create(path) // #nosec G304 -- in the run's folder
	if err != nil {
		return err
	}
	_, err = io.Copy(to, stream)
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	return err
}

// finish waits up to timeout until all logs are complete. Then it stops copying.
func (k *logKeeper) finish(timeout time.Duration) {
	done := make(chan struct{})
	go func() { k.copiers.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(timeout):
	}
	k.stop()
	<-done
}
