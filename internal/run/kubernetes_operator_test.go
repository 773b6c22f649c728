package run

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A soak under another operator than the tested one has a verdict with a warning.
func TestUntestedOperatorVersionIsAWarning(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.release()
	k, operator := r.inCluster(t)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "k6-operator-controller-manager", Namespace: "k6-operator-system"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "ghcr.io/grafana/k6-operator:controller-v1.4.0"}}
	require.NoError(t, operator.typed.Tracker().Add(d))
	outcome, err := k.session.run(r.graceful, r.force)
	require.NoError(t, err)
	assert.Equal(t, verdict.Pass, outcome)
	assert.Regexp(t, "the k6-operator is v1.4.0, older than the tested v1.6.0", r.verdict(t).Warnings)
}
