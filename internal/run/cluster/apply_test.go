package cluster

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestRunCanBeFoundAndRemovedByLabels(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	launch, err := w.Find(t.Context(), "ns", "t")
	require.NoError(t, err)
	assert.Equal(t, Launch{Document: plan.Document{Plan: testPlan()}, Shards: "s3://soak/t", Length: time.Hour}, launch)
	names, err := w.OtherRuns(t.Context(), "ns", testPlan().BackendURL)
	require.NoError(t, err)
	assert.Equal(t, []string{runName}, names)
	names, err = w.OtherRuns(t.Context(), "ns", "http://other.ns.svc:8080")
	require.NoError(t, err)
	assert.Empty(t, names, "a run that loads another service must not be listed")
	require.NoError(t, w.Delete(t.Context(), "ns", runName))
	_, err = w.Find(t.Context(), "ns", "t")
	require.EqualError(t, err, "there is no TestRun soak-t in ns: the run was never started, or was cleaned up")
	require.NoError(t, w.Delete(t.Context(), "ns", runName), "deleting a missing object must not be an error")
}

// The fake has no garbage collector, so pods remain. A user who may create TestRuns but not list pods gets an error,
// not an endless wait.
func TestFailedCleanupIsReported(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	w.show(t, snapshot("running"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, w.Delete(ctx, "ns", runName), "clean up the run: 5 pods still exist; run `kubectl delete testrun -n ns soak-t`")
	w.typed.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("not you"))
	})
	ctx, cancel = context.WithTimeout(t.Context(), 10*pollInterval)
	defer cancel()
	require.ErrorContains(t, w.Delete(ctx, "ns", runName), "not you")
	require.NoError(t, ctx.Err())
}

func TestRunOwnsTokensAndModuleOfItsPods(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	m := buildOverlay(t, "local")
	m.TestRun.SetName("soak-u")
	m.TestRun.SetNamespace("ns")
	launch := Launch{Document: plan.Document{Plan: plan.Plan{TestID: "u"}}, Secrets: map[string]string{"BACKEND_TOKEN": "hush", "PUBLISH_TOKEN": "psst"}, Module: "export default {}"}
	require.NoError(t, w.Create(t.Context(), m.TestRun, launch))
	secret, err := w.CoreV1().Secrets("ns").Get(t.Context(), "soak-u-token", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"BACKEND_TOKEN": "hush", "PUBLISH_TOKEN": "psst"}, secret.StringData)
	require.Len(t, secret.OwnerReferences, 1, "the secret must be deleted with its TestRun")
	assert.Equal(t, "soak-u", secret.OwnerReferences[0].Name)
	module, err := w.CoreV1().ConfigMaps("ns").Get(t.Context(), "soak-u-service", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"service.js": "export default {}"}, module.Data)
	assert.Equal(t, secret.OwnerReferences, module.OwnerReferences)
	err = w.Create(t.Context(), m.TestRun, Launch{Document: plan.Document{Plan: plan.Plan{TestID: "u"}}})
	require.ErrorContains(t, err, "the TestRun soak-u already exists; choose another --testid, or follow it with `soak attach u`")
	w.dynamic.PrependReactor("create", "testruns", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(testRuns.GroupResource(), "")
	})
	require.ErrorContains(t, w.Create(t.Context(), m.TestRun, launch), "install the k6-operator v1.6 (docs/distributed.md)")
}

// A pipeline's service account may create TestRuns, but not the namespace and its policies. Apply assumes that an
// administrator has applied them.
func TestForbiddenObjectsMustExist(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	exists := true
	w.dynamic.PrependReactor("get", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if !exists {
			return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), "sse-soak")
		}
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "sse-soak", errors.New("not to be read"))
	})
	overlay := buildOverlay(t, "local")
	var applied []string
	w.dynamic.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch, ok := a.(clienttesting.PatchAction)
		if !ok || a.GetResource().Resource == "namespaces" {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "sse-soak", errors.New("not you"))
		}
		applied = append(applied, a.GetResource().Resource+"/"+patch.GetName())
		return true, overlay.TestRun, nil
	})
	skipped, err := w.Apply(t.Context(), overlay.Setup)
	require.NoError(t, err)
	assert.Equal(t, []string{"Namespace sse-soak"}, skipped)
	assert.Contains(t, applied, "networkpolicies/deny")
	assert.Contains(t, applied, "deployments/bucket")
	exists = false
	_, err = w.Apply(t.Context(), overlay.Setup)
	require.ErrorContains(t, err, "apply Namespace sse-soak: ")
	require.ErrorContains(t, err, "not you; an administrator must apply the overlay once")
}

func TestAwaitNamesSilenceOfTheCluster(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	const limit = 10 * time.Millisecond
	w.typed.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		time.Sleep(2 * limit)
		return true, nil, errors.New("timeout")
	})
	require.EqualError(t, w.Await(t.Context(), "ns", "backend", limit, func(string) {}), "backend in ns was not ready after 10ms: the cluster has not answered")
}

func TestTargetRestartsAreFailures(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	backend := pod("backend")
	backend.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2}}
	require.NoError(t, w.typed.Tracker().Add(backend))
	before := backend
	text, _ := w.Restarts(t.Context(), before)
	assert.Empty(t, text, "restarts before the run must not count")
	backend = backend.DeepCopy()
	backend.Status.ContainerStatuses[0].RestartCount = 3
	backend.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.NewTime(noon),
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	require.NoError(t, w.typed.Tracker().Update(pods, backend, "ns"))
	text, at := w.Restarts(t.Context(), before)
	assert.Equal(t, "the target's pod backend-x7 on node node-a was restarted 1 time, last at 12:00:00 UTC (OOMKilled, exit code 137)", text)
	assert.True(t, at.Equal(noon))
	require.NoError(t, w.typed.Tracker().Delete(pods, "ns", "backend-x7"))
	text, _ = w.Restarts(t.Context(), before)
	assert.Equal(t, "the target's pod backend-x7 was replaced during the run", text)
}

// The reference server has the address that the runners use, and is deleted with the TestRun. The network policy of the
// base allows its traffic.
func TestControlGroupReference(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	run := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"runner": map[string]any{
		"image": "sse-soak/k6:local", "imagePullPolicy": "IfNotPresent", "imagePullSecrets": []any{map[string]any{"name": "registry"}},
	}}}}
	run.SetName(runName)
	run.SetNamespace("ns")
	require.NoError(t, w.CreateControl(t.Context(), run, "t"))

	at, err := url.Parse(ControlURL("ns", "t"))
	require.NoError(t, err)
	service, err := w.CoreV1().Services("ns").Get(t.Context(), "soak-t-control", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "soak-t-control.ns.svc:7070", at.Host)
	assert.EqualValues(t, 7070, service.Spec.Ports[0].Port)
	deployment, err := w.AppsV1().Deployments("ns").Get(t.Context(), "soak-t-control", metav1.GetOptions{})
	require.NoError(t, err)
	pod := deployment.Spec.Template
	assert.Equal(t, service.Spec.Selector, pod.Labels)
	assert.Equal(t, "sse-soak/k6:local", pod.Spec.Containers[0].Image)
	assert.Equal(t, "registry", pod.Spec.ImagePullSecrets[0].Name)
	for _, owners := range [][]metav1.OwnerReference{service.OwnerReferences, deployment.OwnerReferences} {
		require.Len(t, owners, 1)
		assert.Equal(t, runName, owners[0].Name)
	}
	manifests, err := Build(filepath.Join("..", "..", "..", "infra", "k6-operator", "overlays", "local"))
	require.NoError(t, err)
	policy := manifests.find("NetworkPolicy", "control")
	require.NotNil(t, policy)
	selects, _, _ := unstructured.NestedString(policy.Object, "spec", "podSelector", "matchLabels", "app.kubernetes.io/name")
	assert.Equal(t, pod.Labels["app.kubernetes.io/name"], selects)

	run.SetName("another")
	require.ErrorContains(t, w.CreateControl(t.Context(), run, "t"), "find the TestRun another")
}
