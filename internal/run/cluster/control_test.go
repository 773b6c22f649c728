package cluster

import (
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The reference target has the address that the runners use, is deleted with the TestRun, and is allowed by the
// base's policy.
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
