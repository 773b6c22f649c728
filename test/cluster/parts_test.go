//go:build k8s

package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/sse-soak/sse-soak/internal/ledger"
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

const victim = "gold-5" // client that misses a price

// A feed sends a price without a number to all clients every 100 ms. About 5 seconds after the victim connects, the
// feed drops one price, for the victim or for all clients of its pod. Without a victim, it drops no price.
type feed struct {
	start      time.Time
	byPod      bool                   // the price is dropped for all clients of the pod
	dropNumber atomic.Int64           // number of the dropped price; 0: unknown
	pod        atomic.Pointer[string] // address of the pod of the victim
	losses     atomic.Uint64
}

func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const interval, offset = 100 * time.Millisecond, 50
	pod, _, _ := net.SplitHostPort(r.RemoteAddr)
	isVictim := r.URL.Query().Get("id") == victim
	number := int64(time.Since(f.start)/interval) + 1
	if isVictim {
		f.pod.Store(&pod)
		f.dropNumber.Store(number + offset)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for ; ; number++ {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Until(f.start.Add(time.Duration(number) * interval))):
		}
		if number == f.dropNumber.Load() && (isVictim || f.byPod && pod == *f.pod.Load()) {
			f.losses.Add(1)
			continue
		}
		fmt.Fprintf(w, "event: price\ndata: %d\n\n", number*7919%104729)
	}
}

// Runners compare their clients with the clients of other runners, and find exactly the dropped prices. The pods
// receive the description from soak, because their image does not contain it.
func TestFeedWithoutNumbersIsExact(t *testing.T) {
	c := connect(t)
	description := filepath.Join(t.TempDir(), "prices.js")
	require.NoError(t, os.WriteFile(description, []byte(`export default {
		name: 'prices', connect: { url: '{base}/prices?id={id}' }, message: { event: 'price', same: 'data' },
	};`), 0o600))
	for name, tt := range map[string]struct {
		victims bool
		byPod   bool
		losses  uint64
		finding string
	}{
		"feed-clean":  {},
		"feed-client": {victims: true, losses: 1, finding: `^gold-5 missed message \d+, which 11 of 12 clients received, the first at `},
		"feed-runner": {victims: true, byPod: true, losses: 4, finding: `^gold-\d+ missed message \d+, which 8 of 12 clients received, the first at `},
	} {
		t.Run(name, func(t *testing.T) {
			f := &feed{start: time.Now(), byPod: tt.byPod}
			server := httptest.NewUnstartedServer(f)
			listener, err := net.Listen("tcp", net.JoinHostPort(c.hostAddress(t), "0"))
			require.NoError(t, err)
			server.Listener = listener
			server.Start()
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			prefix := map[bool]string{true: "gold-", false: "clean-"}[tt.victims]
			s := c.run(t, name, "--connections", "12", "--runners", "3", "--service", description, "--backend-url", server.URL, "--prefix", prefix)
			want := map[bool]verdict.Outcome{true: verdict.Fail, false: verdict.Pass}[tt.victims]
			s.wait(t)
			v := s.verdict(t)
			require.Equal(t, want, v.Verdict, s.output())
			assert.Equal(t, verdict.BySubscribers, v.Evidence.Kind)
			assert.Equal(t, tt.losses, f.losses.Load())
			m := v.Messages
			assert.Equal(t, [4]uint64{tt.losses, 0, 0, 0}, [4]uint64{m.Missed, m.Duplicated, m.Reordered, m.Corrupted})
			assert.Greater(t, m.Received, uint64(12*100))
			for _, finding := range v.Findings {
				if finding.Kind == string(ledger.KindLost) {
					assert.Regexp(t, tt.finding, finding.Text)
				}
			}
			c.requireNothingLeft(t)
		})
	}
}

// countOutcomes counts the requests in the ledger of a model by their outcome.
func countOutcomes(t *testing.T, url string) map[string]int64 {
	t.Helper()
	resp, err := http.Get(url + "/ledger")
	require.NoError(t, err)
	defer resp.Body.Close()
	counts := map[string]int64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var row struct {
			Outcome string `json:"outcome"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		counts[row.Outcome]++
	}
	require.NoError(t, lines.Err())
	return counts
}

// The states of the responses of two runners match the ledger of the model, even during a soak of another service.
func TestFiniteIsExact(t *testing.T) {
	c := connect(t)
	for name, kind := range map[string]struct {
		model, run []string
		verdict    verdict.Outcome
		sentence   string
	}{
		"finite-clean":     {nil, nil, verdict.Pass, "PASS: 1,200 of 1,200 responses complete, 48,000 of 48,000 chunks received"},
		"finite-truncated": {[]string{"--fault", "truncate@20:0.05"}, nil, verdict.Fail, "of 1,200 responses truncated"},
		"finite-abandoned": {nil, []string{"--abandon", "10"}, verdict.Pass, "of 1,200 responses complete"},
	} {
		t.Run(name, func(t *testing.T) {
			url := c.backend(t, append([]string{"model"}, kind.model...)...)
			var otherSoak *soak
			if name == "finite-clean" {
				otherSoak = c.soak(t, "next-to-finite", "--connections", "50", "--runners", "2")
			}
			s := c.command(t, t.TempDir(), append([]string{
				"run", "finite", "--on", "k8s", "--runners", "2", "--rate", "20", "--seconds", "60", "--drain", "10", "--backend-url", url, "--testid", newID(name),
			}, kind.run...)...)
			s.wait(t)
			v := s.verdict(t)
			assert.Equal(t, kind.verdict, v.Verdict)
			assert.Contains(t, s.output(), kind.sentence)
			assert.Regexp(t, `[1-9]\d* requests · \d+ failed`, s.output(), "progress must come from checkpoints")
			outcomes := countOutcomes(t, url)
			require.NotNil(t, v.Responses)
			assert.EqualValues(t, 1200, v.Responses.Started)
			assert.Equal(t, outcomes["complete"], v.Responses.Complete)
			assert.Equal(t, outcomes["truncated"], v.Responses.Truncated)
			assert.Equal(t, outcomes["left"], v.Responses.Abandoned)
			assert.EqualValues(t, 1200, outcomes["complete"]+outcomes["truncated"]+outcomes["left"], "%v", outcomes)
			assert.Zero(t, v.Messages.Missed+v.Messages.Duplicated+v.Messages.Reordered+v.Messages.Corrupted)
			if otherSoak != nil {
				assert.Equal(t, 0, otherSoak.wait(t), "%s", otherSoak.output())
				assert.Equal(t, 50, otherSoak.verdict(t).Connections.Completed)
			}
			c.requireNothingLeft(t)
		})
	}
}
