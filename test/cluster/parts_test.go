//go:build k8s

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Job runs `soak run --continue --runner K/N` in its pods. The successor of an evicted pod continues with the clients
// of that pod.
func TestEvictedPartContinues(t *testing.T) {
	c := connect(t)
	id := newID("parts")
	text, err := os.ReadFile("../../infra/k6-operator/parts/job.yaml")
	require.NoError(t, err)
	var job batchv1.Job
	require.NoError(t, yaml.UnmarshalStrict(text, &job))
	job.Name = id
	soakArgs := &job.Spec.Template.Spec.Containers[0].Args
	for name, value := range map[string]string{
		"testid": id, "connections": "40", "seconds": "90", "min-coverage": "50", "backend-url": c.backend(t), "noop-interval": "1",
	} {
		*soakArgs = slices.DeleteFunc(*soakArgs, func(a string) bool { return strings.HasPrefix(a, "--"+name+"=") })
		*soakArgs = append(*soakArgs, "--"+name+"="+value)
	}
	jobs, pods := c.BatchV1().Jobs(namespace), c.CoreV1().Pods(namespace)
	_, err = jobs.Create(t.Context(), &job, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		background := metav1.DeletePropagationBackground
		_ = jobs.Delete(context.Background(), id, metav1.DeleteOptions{PropagationPolicy: &background})
	})
	log := func(pod string) string {
		text, _ := pods.GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(t.Context()) // "": the pod does not run yet
		return string(text)
	}
	newestPod := func() string { // of runner 2; "": none
		list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=" + id + "," + batchv1.JobCompletionIndexAnnotation + "=1"})
		require.NoError(t, err)
		slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
		if len(list.Items) == 0 {
			return ""
		}
		return list.Items[0].Name
	}
	evictedPod := ""
	require.Eventually(t, func() bool {
		evictedPod = newestPod()
		return evictedPod != "" && strings.Contains(log(evictedPod), "20/20 open")
	}, timeout, 500*time.Millisecond, "runner 2 must open its streams")
	require.NoError(t, c.evict(t.Context(), evictedPod))
	require.Eventually(t, func() bool {
		pod := newestPod()
		return pod != evictedPod && strings.Contains(log(pod), "its clients continue for")
	}, timeout, 500*time.Millisecond, "the next pod of runner 2 must continue")
	require.Eventually(t, func() bool {
		j, err := jobs.Get(t.Context(), id, metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 2
	}, timeout, time.Second, "both runners must succeed")

	bucket, found := cluster.ServiceOf("http://bucket.sse-soak.svc:9000")
	require.True(t, found, "the URL must be of a service in the cluster")
	forward, err := c.OpenService(t.Context(), bucket)
	require.NoError(t, err)
	defer forward.Close()
	s := c.command(t, t.TempDir(), "merge", fmt.Sprintf("s3://soak/soak/%s?endpoint=http://%s&use_path_style=true&region=us-east-1&anonymous=true", id, forward.Address))
	s.testid = id
	assert.Equal(t, 0, s.wait(t), "%s", s.output())
	v := s.verdict(t)
	assert.Equal(t, verdict.Pass, v.Verdict)
	require.NotNil(t, v.Watched)
	assert.Less(t, v.Watched.Share, 1., "the time between the pods must not count as watched")
	assert.Zero(t, v.Messages.Missed)
	shards, err := filepath.Glob(filepath.Join(s.out, id, "shards", "runner-2-*"))
	require.NoError(t, err)
	assert.Len(t, shards, 2)
}
