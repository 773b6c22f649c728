package cluster

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// install adds an operator with a sidecar to the cluster.
func (w *fakeCluster) install(t *testing.T, image string) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "k6-operator-controller-manager", Namespace: operatorNamespace}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "quay.io/brancz/kube-rbac-proxy:v0.18.2"}, {Image: image}}
	require.NoError(t, w.typed.Tracker().Add(d))
}

func TestVersionOfTheOperator(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]struct{ version, warning string }{
		"ghcr.io/grafana/k6-operator:controller-v1.6.0":                   {"v1.6.0", ""},
		"ghcr.io/grafana/k6-operator:controller-v1.6.3":                   {"v1.6.3", ""},
		"registry:5000/mine/k6-operator:v1.6.0@sha256:0123":               {"v1.6.0", ""},
		"ghcr.io/grafana/k6-operator:controller-v0.0.21":                  {"v0.0.21", "is v0.0.21, older than the tested v1.6.0"},
		"ghcr.io/grafana/k6-operator:controller-v1.5.1":                   {"v1.5.1", "older than"},
		"ghcr.io/grafana/k6-operator:controller-v1.10.0":                  {"v1.10.0", "is v1.10.0, newer than the tested v1.6.0"},
		"ghcr.io/grafana/k6-operator:controller-v2.0.0-rc1@sha256:012345": {"v2.0.0-rc1", "newer than"},
	} {
		w := newFakeCluster(t)
		w.install(t, image)
		version, warning, err := w.Operator(t.Context())
		require.NoError(t, err, image)
		assert.Equal(t, want.version, version, image)
		if assert.Contains(t, warning, want.warning, image); want.warning == "" {
			assert.Empty(t, warning, image)
		}
	}
}

// The service account of a pipeline may read only its own namespace.
func TestVersionOfAnUnreadableOperator(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	_, _, err := w.Operator(t.Context())
	require.EqualError(t, err, "read the version of the k6-operator: no Deployment in k6-operator-system has a k6-operator image with a version")
	w.install(t, "ghcr.io/grafana/k6-operator:latest")
	_, _, err = w.Operator(t.Context())
	require.ErrorContains(t, err, "no Deployment in k6-operator-system")
	w.typed.PrependReactor("list", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("not you"))
	})
	_, _, err = w.Operator(t.Context())
	require.True(t, apierrors.IsForbidden(err), err)
}

// The version installed by default, here and on AWS, is the tested one.
func TestOperatorVersionIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"../../../docs/distributed.md", "../../../infra/terraform/files", "../../../test/cluster/offline"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, string(text), TestedOperator, file)
	}
}
