package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// prometheusOverlay is an overlay with the component for a Prometheus.
const prometheusOverlay = "../../test/cluster/testdata/watched"

func TestRunnersWriteToPrometheus(t *testing.T) {
	t.Parallel()
	for overlay, write := range map[string]bool{"overlays/local": true, "overlays/aws": true, prometheusOverlay: false, prometheusOverlay + "/": true} {
		m := buildTestOverlay(t, overlay)
		env, _, err := unstructured.NestedSlice(m.TestRun.Object, "spec", "runner", "env")
		require.NoError(t, err)
		env = append(env, map[string]any{"name": "K6_PROMETHEUS_RW_SERVER_URL", "value": "http://of-the-overlay"})
		require.NoError(t, unstructured.SetNestedSlice(m.TestRun.Object, env, "spec", "runner", "env"))
		job := jobOf(testPlan(), "s3://b/t", write)
		job.Write = write
		require.NoError(t, m.Render(job))
		assert.Equal(t, []any{"--no-color", "--out", "soak=s3://b/t", "--out", "experimental-prometheus-rw", "--tag", "testid=t"}, field(t, m, "spec", "args"), overlay)
		if write {
			assert.Empty(t, variable(t, m, "runner", "K6_PROMETHEUS_RW_SERVER_URL"), "the variable would override the secret")
		} else {
			assert.Equal(t, []string{"http://of-the-overlay"}, variable(t, m, "runner", "K6_PROMETHEUS_RW_SERVER_URL"))
			assert.Equal(t, []string{"p(50),p(99),max"}, variable(t, m, "runner", "K6_PROMETHEUS_RW_TREND_STATS"))
		}
		assert.Empty(t, variable(t, m, "initializer", "K6_PROMETHEUS_RW_SERVER_URL"))
	}
}

// The policies let runners reach a Prometheus at any address.
func TestNetworkPoliciesAllowRunnerTraffic(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"local", "aws", "scale", "k3s"} {
		var policy networkingv1.NetworkPolicy
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(buildOverlay(t, name).find("NetworkPolicy", "runner").Object, &policy))
		require.Len(t, policy.Spec.Egress, 1)
		assert.Empty(t, policy.Spec.Egress[0].Ports, "any port")
		require.Len(t, policy.Spec.Egress[0].To, 2)
		assert.Equal(t, "0.0.0.0/0", policy.Spec.Egress[0].To[0].IPBlock.CIDR)
		assert.Equal(t, "::/0", policy.Spec.Egress[0].To[1].IPBlock.CIDR)
	}
}
