package run

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/test/fakebucket"
)

const namespace = "ns"

// A fakeOperator handles a TestRun as the k6-operator does, with processes in place of pods.
type fakeOperator struct {
	typed   *fake.Clientset
	k6      string
	run     string // name of the TestRun
	objects map[string]any

	mu        sync.Mutex
	deleted   bool
	runners   map[string]*exec.Cmd // by pod
	processes sync.WaitGroup
}

// fakeCluster returns a client of a cluster whose operator starts fake runners, and an overlay for the cluster.
func fakeCluster(t *testing.T, k6 string) (client *cluster.Client, overlay string, operator *fakeOperator) {
	t.Helper()
	o := &fakeOperator{typed: fake.NewSimpleClientset(), k6: k6, runners: map[string]*exec.Cmd{}}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{{Group: "k6.io", Version: "v1alpha1", Resource: "testruns"}: "TestRunList"})
	dynamic.PrependReactor("create", "testruns", func(action clienttesting.Action) (bool, runtime.Object, error) {
		testRun, _ := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		o.start(testRun.DeepCopy())
		return false, nil, nil
	})
	dynamic.PrependReactor("delete", "testruns", func(clienttesting.Action) (bool, runtime.Object, error) {
		o.delete()
		return false, nil, nil
	})
	t.Cleanup(o.delete)
	client = &cluster.Client{Interface: o.typed, Dynamic: dynamic, Open: func(_ context.Context, _, pod string, _ int) (*cluster.Forward, error) {
		api := httptest.NewServer(o.api(pod))
		t.Cleanup(api.Close)
		return &cluster.Forward{Address: strings.TrimPrefix(api.URL, "http://")}, nil
	}}
	overlay = t.TempDir()
	for name, text := range map[string]string{
		"kustomization.yaml": "namespace: " + namespace + "\nresources: [testrun.yaml]\n",
		"testrun.yaml":       "apiVersion: k6.io/v1alpha1\nkind: TestRun\nmetadata: {name: soak}\nspec: {script: {localFile: /soak/load-tests/sse/connectionTest.js}, runner: {env: []}, initializer: {env: []}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(overlay, name), []byte(text), 0o600))
	}
	return client, overlay, o
}

// inCluster returns the driver of a session on a fake cluster, with the configuration of the rig.
func (r *rig) inCluster(t *testing.T) (*kubernetes, *fakeOperator) {
	t.Helper()
	client, overlay, operator := fakeCluster(t, r.k6)
	r.config.On, r.config.Overlay, r.config.Shards, r.config.Kubernetes.StartTimeout = "k8s", overlay, newBucket(t), time.Minute
	d := r.session(r.config).driver.(*kubernetes)
	d.client, d.pollInterval = client, 5*time.Millisecond
	return d, operator
}

func (r *rig) startInCluster(t *testing.T, d *kubernetes) {
	t.Helper()
	require.NoError(t, d.check(t.Context()))
	require.NoError(t, d.prepare(t.Context()))
	_, err := d.start(t.Context(), round{dir: d.session.dir, shards: d.session.location})
	require.NoError(t, err)
}

// start runs every runner as a process, and adds a running pod for it to the cluster.
func (o *fakeOperator) start(run *unstructured.Unstructured) {
	o.run, o.objects = run.GetName(), run.Object
	n, _, _ := unstructured.NestedInt64(run.Object, "spec", "parallelism")
	args, _, _ := unstructured.NestedStringSlice(run.Object, "spec", "args")
	list, _, _ := unstructured.NestedSlice(run.Object, "spec", "runner", "env")
	env := os.Environ()
	for _, e := range list {
		entry := e.(map[string]any)
		env = append(env, entry["name"].(string)+"="+entry["value"].(string))
	}
	for _, helper := range []string{"initializer", "starter"} {
		o.show(helper, corev1.PodSucceeded, 0)
	}
	for i := range n {
		name := string(rune('1' + i))
		cmd := exec.Command(o.k6, args...)
		cmd.Env = append(env, "RUNNER="+name)
		o.show(name, corev1.PodRunning, 0)
		if cmd.Start() != nil {
			o.show(name, corev1.PodFailed, 127)
			continue
		}
		o.mu.Lock()
		o.runners[o.run+"-"+name+"-pod"] = cmd
		o.mu.Unlock()
		o.processes.Go(func() {
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() == 0 {
				o.show(name, corev1.PodSucceeded, 0)
				return
			}
			o.show(name, corev1.PodFailed, int32(cmd.ProcessState.ExitCode()))
		})
	}
}

// show puts a Job of the run and its pod into the cluster.
func (o *fakeOperator) show(part string, phase corev1.PodPhase, code int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.deleted {
		return
	}
	job := o.run + "-" + part
	labels := map[string]string{"app": "k6", "k6_cr": o.run, "job-name": job}
	meta := metav1.ObjectMeta{Name: job, Namespace: namespace, Labels: labels}
	pod := &corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{Phase: phase}}
	pod.Name += "-pod"
	j := &batchv1.Job{ObjectMeta: meta}
	if phase != corev1.PodRunning {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}}
		condition := map[bool]batchv1.JobConditionType{true: batchv1.JobComplete, false: batchv1.JobFailed}[code == 0]
		j.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue}}
	}
	for resource, object := range map[schema.GroupVersionResource]runtime.Object{
		corev1.SchemeGroupVersion.WithResource("pods"): pod, batchv1.SchemeGroupVersion.WithResource("jobs"): j,
	} {
		if o.typed.Tracker().Update(resource, object, namespace) != nil {
			_ = o.typed.Tracker().Create(resource, object, namespace)
		}
	}
}

// delete ends all runners and removes their pods, as the cluster does when the TestRun is deleted.
func (o *fakeOperator) delete() {
	o.mu.Lock()
	o.deleted = true
	for _, cmd := range o.runners {
		_ = cmd.Process.Kill()
	}
	pods, _ := o.typed.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
	for _, pod := range pods.Items {
		_ = o.typed.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), namespace, pod.Name)
	}
	o.mu.Unlock()
	o.processes.Wait()
}

// api serves k6's REST API in a pod: it reports the start, and ends the runner on request.
func (o *fakeOperator) api(pod string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			o.mu.Lock()
			_ = o.runners[pod].Process.Signal(os.Interrupt)
			o.mu.Unlock()
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"attributes": map[string]any{"paused": false}}})
	})
}

// newBucket starts an S3 server in this process, and returns the URL of its bucket.
func newBucket(t *testing.T) string {
	t.Helper()
	return "s3://soaks/all" + fakebucket.Start(t, fakebucket.New(t, "soaks")) + "&anonymous=true"
}
