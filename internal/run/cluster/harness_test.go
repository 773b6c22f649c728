package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// A fakeCluster is a Kubernetes API with a state that the test sets, and a k6 behind each pod.
type fakeCluster struct {
	*Client
	typed   *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	k6      *fakeK6
}

func testPlan() plan.Plan {
	p := plan.Default()
	p.TestID, p.Runners, p.Prefix, p.BackendURL = "t", 3, "soak-", "http://backend.ns.svc:8080"
	p.ConnectionsPerVU = 50
	return p
}

func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()
	run := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"stage": "started"}}}
	run.SetGroupVersionKind(schema.GroupVersionKind{Group: "k6.io", Version: "v1alpha1", Kind: "TestRun"})
	run.SetName(runName)
	run.SetNamespace("ns")
	text, err := json.Marshal(testPlan())
	require.NoError(t, err)
	run.SetAnnotations(map[string]string{planAnnotation: string(text), shardsAnnotation: "s3://soak/t", lengthAnnotation: "1h0m0s"})
	w := &fakeCluster{typed: fake.NewSimpleClientset(), k6: newFakeK6(t)}
	w.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{testRuns: "TestRunList"}, run)
	w.Client = &Client{Interface: w.typed, Dynamic: w.dynamic, Open: w.k6.open}
	return w
}

// show stores the objects of a snapshot in the cluster. It updates objects that exist already, because the run polls
// continuously, and keeps objects that the snapshot lacks.
func (w *fakeCluster) show(t *testing.T, s Snapshot) {
	t.Helper()
	pods, jobs := corev1.SchemeGroupVersion.WithResource("pods"), batchv1.SchemeGroupVersion.WithResource("jobs")
	put := func(resource schema.GroupVersionResource, o runtime.Object) {
		if err := w.typed.Tracker().Update(resource, o, "ns"); err != nil {
			require.NoError(t, w.typed.Tracker().Create(resource, o, "ns"))
		}
	}
	for _, p := range append([]Part{s.Initializer, s.Starter}, s.Runners...) {
		if p.Pod != nil {
			put(pods, p.Pod)
		}
		if p.Job != nil {
			put(jobs, p.Job)
		}
	}
}

// A fakeK6 serves k6's REST API for all pods.
type fakeK6 struct {
	server *httptest.Server

	mu      sync.Mutex
	paused  bool
	stopped int // number of requests to stop
}

func newFakeK6(t *testing.T) *fakeK6 {
	t.Helper()
	k := &fakeK6{}
	k.server = httptest.NewServer(k)
	t.Cleanup(k.server.Close)
	return k
}

func (k *fakeK6) open(context.Context, string, string, int) (*Forward, error) {
	return &Forward{Address: strings.TrimPrefix(k.server.URL, "http://"), stop: func() {}}, nil
}

func (k *fakeK6) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case r.URL.Path == "/v1/metrics":
		_, _ = w.Write([]byte(`{"data":[{"type":"metrics","id":"sse_connection_opened","attributes":{"sample":{"count":400}}},
			{"type":"metrics","id":"soak_noops_missed","attributes":{"sample":{"value":1}}},
			{"type":"metrics","id":"soak_noops","attributes":{"sample":{"count":1234,"rate":5}}}]}`))
		return
	case r.Method == http.MethodPatch:
		var s k6Status
		if json.NewDecoder(r.Body).Decode(&s) == nil && s.Data.Attributes.Stopped && s.Data.Attributes.Paused == nil {
			k.stopped++
		}
	}
	var s k6Status
	s.Data.Attributes.Paused = &k.paused
	_ = json.NewEncoder(w).Encode(s)
}

func (k *fakeK6) pause(paused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.paused = paused
}
