package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func variable(t *testing.T, m *Manifests, pod, name string) (values []string) {
	t.Helper()
	list, _ := field(t, m, "spec", pod, "env").([]any)
	for _, e := range list {
		if entry, ok := e.(map[string]any); ok && entry["name"] == name {
			values = append(values, entry["value"].(string))
		}
	}
	return values
}

// field returns the value of a field of the TestRun; nil if the field is missing.
func field(t *testing.T, m *Manifests, path ...string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(m.TestRun.Object, path...)
	require.NoError(t, err)
	return value
}

func sourceOf(t *testing.T, m *Manifests, pod string) *plan.Source {
	t.Helper()
	source, err := plan.SourceOf(func(name string) string {
		if values := variable(t, m, pod, name); len(values) == 1 {
			return values[0]
		}
		return ""
	})
	require.NoError(t, err)
	return source
}

func launchOf(p plan.Plan, shards string, token bool) Launch {
	launch := Launch{Document: plan.Document{Plan: p}, Shards: shards}
	if token {
		launch.Secrets = map[string]string{"BACKEND_TOKEN": "hush"}
	}
	return launch
}

// The overlays have the settings of a soak. None of these settings may reach the script of another suite.
func TestSuiteHasItsScriptAndSettings(t *testing.T) {
	t.Parallel()
	m := buildOverlay(t, "local")
	launch := Launch{
		Document: plan.Document{Plan: plan.Plan{Suite: "rampup", TestID: "t", Runners: 2, BackendURL: "http://b"}, Settings: map[string]string{"STAGES": "1,2"}},
		Shards:   "s3://b/t", Length: time.Minute, Script: []string{"load-tests", "http", "rampUp.js"}, Memory: 1 << 30,
	}
	require.NoError(t, m.Render(launch))
	assert.Equal(t, "/soak/load-tests/http/rampUp.js", field(t, m, "spec", "script", "localFile"))
	for _, pod := range []string{"runner", "initializer"} {
		source := sourceOf(t, m, pod)
		assert.Equal(t, "1,2", source.Text("STAGES"))
		assert.Equal(t, "2", source.Text("RUNNERS"))
		assert.Equal(t, []string{"50"}, variable(t, m, pod, "GOGC"))
		assert.Empty(t, variable(t, m, pod, "CONNECTIONS"))
		assert.Empty(t, variable(t, m, pod, "SECONDS"))
	}
	assert.Equal(t, "1537Mi", memory(t, m, "limits"))
	require.NoError(t, unstructured.SetNestedField(m.TestRun.Object, "/my/soak.js", "spec", "script", "localFile"))
	require.ErrorContains(t, m.Render(launch), "is not the path of load-tests in the image")
}

func TestPlanReachesRunnersAndInitializer(t *testing.T) {
	t.Parallel()
	m := buildOverlay(t, "local")
	p := testPlan()
	p.NoopInterval = 0.5
	require.NoError(t, m.Render(launchOf(p, "s3://bucket/t?region=x", true)))
	assert.Contains(t, field(t, m, "spec", "runner", "envFrom"), map[string]any{"secretRef": map[string]any{"name": "soak-t-token"}})
	assert.Nil(t, field(t, m, "spec", "initializer", "envFrom"), "the initializer must not get the token, because it shows its variables as arguments")
	assert.Equal(t, "soak-t", m.TestRun.GetName())
	assert.EqualValues(t, 3, field(t, m, "spec", "parallelism"))
	assert.Equal(t, []any{"--no-color", "--out", "soak=s3://bucket/t?region=x"}, field(t, m, "spec", "args"))
	for _, pod := range []string{"runner", "initializer"} {
		assert.Equal(t, p, sourceOf(t, m, pod).Base())
		for name, want := range map[string]string{"NOOP_INTERVAL": "0.5", "GOGC": "50"} {
			assert.Equal(t, []string{want}, variable(t, m, pod, name), "the %[2]s must have the variable %[1]s once", name, pod)
		}
		assert.NotContains(t, variable(t, m, pod, plan.DocumentVariable)[0], "{", "the variable must have no characters that a shell interprets")
	}
}

func TestPodsGetTheModuleOfTheUser(t *testing.T) {
	t.Parallel()
	m := buildOverlay(t, "local")
	launch := launchOf(testPlan(), "s3://b/t", false)
	launch.Plan.Service, launch.Module = ModulePath("/home/a/my feed.js"), "export default {}"
	require.NoError(t, m.Render(launch))
	for _, pod := range []string{"runner", "initializer"} {
		assert.Equal(t, "/soak/service/my feed.js", sourceOf(t, m, pod).Text("SERVICE"))
		for list, want := range map[string]map[string]any{
			"volumeMounts": {"name": "service", "mountPath": "/soak/service"},
			"volumes": {"name": "service", "configMap": map[string]any{
				"name": "soak-t-service", "items": []any{map[string]any{"key": "service.js", "path": "my feed.js"}},
			}},
		} {
			entries := field(t, m, "spec", pod, list)
			assert.Contains(t, entries, want, pod)
			assert.Len(t, entries, 2, "the entry of the overlay, for /tmp, must stay")
		}
	}
}

func memory(t *testing.T, m *Manifests, kind string) any {
	t.Helper()
	return field(t, m, "spec", "runner", "resources", kind, "memory")
}

func TestMemoryRequestGrowsWithThePlan(t *testing.T) {
	t.Parallel()
	m := buildOverlay(t, "local")
	original := memory(t, m, "limits")
	require.NoError(t, m.Render(launchOf(testPlan(), "s3://b/t", false)))
	assert.Equal(t, original, memory(t, m, "limits"), "the memory of the overlay must stay, because 400 streams fit into it")
	p := testPlan()
	p.Connections, p.Runners = 100_000, 5
	require.NoError(t, m.Render(launchOf(p, "s3://b/t", false)))
	// (64 MiB + 400 × 400 KiB + 20,000 × 18 KiB) × 1.5
	assert.Equal(t, "858Mi", memory(t, m, "limits"))
	assert.Equal(t, "858Mi", memory(t, m, "requests"))

	scale := buildOverlay(t, "scale") // it also works without soak, so it has the memory that soak would set
	for _, pod := range []string{"runner", "initializer"} {
		assert.Equal(t, []string{"100000"}, variable(t, scale, pod, "CONNECTIONS"))
		assert.Equal(t, []string{"10"}, variable(t, scale, pod, "RUNNERS"))
	}
	p.Runners = 10
	original = memory(t, scale, "limits")
	require.NoError(t, scale.Render(launchOf(p, "s3://b/t", false)))
	assert.Equal(t, original, memory(t, scale, "limits"))
}

func TestNewBackendHasThePlannedInterval(t *testing.T) {
	t.Parallel()
	m := buildOverlay(t, "local")
	p := testPlan()
	p.NoopInterval = 2
	url, err := m.RenewBackend(p)
	require.NoError(t, err)
	assert.Equal(t, "http://backend.sse-soak.svc:8080", url)
	backend := m.find("Deployment", "backend")
	id, _, err := unstructured.NestedString(backend.Object, "spec", "template", "metadata", "annotations", "sse-soak/testid")
	require.NoError(t, err)
	assert.Equal(t, "t", id, "each run must replace the pod")
	containers, _, err := unstructured.NestedSlice(backend.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	env := containers[0].(map[string]any)["env"]
	assert.Contains(t, env, map[string]any{"name": "NOOP_INTERVAL", "value": "2"})
	assert.NotContains(t, env, map[string]any{"name": "NOOP_INTERVAL", "value": "15"})
	url, err = buildOverlay(t, "aws").RenewBackend(p)
	require.NoError(t, err)
	assert.Empty(t, url, "an overlay without a backend must give no URL")

	m.OmitBackend()
	assert.Nil(t, m.find("Deployment", "backend"))
	assert.Nil(t, m.find("Service", "backend"))
	assert.NotNil(t, m.find("Deployment", "bucket"), "the bucket must stay, because every run needs one")
}

func TestObjectNamesHaveTheTestID(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"20261121-010203", "a", "a-2"} {
		require.NoError(t, CheckTestID(good))
	}
	for _, bad := range []string{"", "A", "a_b", "a.b", "-a", "a-", strings.Repeat("a", 41)} {
		require.ErrorContains(t, CheckTestID(bad), "lower-case letters", bad)
	}
}

func TestClusterServiceIsRecognizedByName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Service{
		"http://backend.ns.svc:8080":               {"ns", "backend", 8080},
		"http://backend.ns.svc.cluster.local./x":   {"ns", "backend", 80},
		"https://backend.ns.svc.cluster.local:444": {"ns", "backend", 444},
	} {
		s, ok := ServiceOf(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, s, text)
	}
	for _, text := range []string{"http://example.com", "http://10.0.0.1:80", "http://backend:80", "s3://b/p", ""} {
		_, ok := ServiceOf(text)
		assert.False(t, ok, text)
	}
}

// prometheusOverlay is an overlay with the Prometheus component.
const prometheusOverlay = "../../test/cluster/testdata/watched"

func TestRunnersWriteToPrometheus(t *testing.T) {
	t.Parallel()
	for overlay, write := range map[string]bool{"overlays/local": true, "overlays/aws": true, prometheusOverlay: false, prometheusOverlay + "/": true} {
		m := buildTestOverlay(t, overlay)
		env, _, err := unstructured.NestedSlice(m.TestRun.Object, "spec", "runner", "env")
		require.NoError(t, err)
		env = append(env, map[string]any{"name": "K6_PROMETHEUS_RW_SERVER_URL", "value": "http://of-the-overlay"})
		require.NoError(t, unstructured.SetNestedSlice(m.TestRun.Object, env, "spec", "runner", "env"))
		launch := launchOf(testPlan(), "s3://b/t", write)
		launch.RemoteWrite = write
		require.NoError(t, m.Render(launch))
		assert.Equal(t, []any{"--no-color", "--out", "soak=s3://b/t", "--out", "experimental-prometheus-rw", "--tag", "testid=t"}, field(t, m, "spec", "args"), overlay)
		if write {
			assert.Empty(t, variable(t, m, "runner", "K6_PROMETHEUS_RW_SERVER_URL"), "the variable must be removed, because it would override the secret")
		} else {
			assert.Equal(t, []string{"http://of-the-overlay"}, variable(t, m, "runner", "K6_PROMETHEUS_RW_SERVER_URL"))
			assert.Equal(t, []string{"p(50),p(99),max"}, variable(t, m, "runner", "K6_PROMETHEUS_RW_TREND_STATS"))
		}
		assert.Empty(t, variable(t, m, "initializer", "K6_PROMETHEUS_RW_SERVER_URL"))
	}
}

// The policies let runners reach a Prometheus server at any address.
func TestNetworkPoliciesAllowRunnerTraffic(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"local", "aws", "scale", "k3s"} {
		var policy networkingv1.NetworkPolicy
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(buildOverlay(t, name).find("NetworkPolicy", "runner").Object, &policy))
		require.Len(t, policy.Spec.Egress, 1)
		assert.Empty(t, policy.Spec.Egress[0].Ports, "the policy must allow any port")
		require.Len(t, policy.Spec.Egress[0].To, 2)
		assert.Equal(t, "0.0.0.0/0", policy.Spec.Egress[0].To[0].IPBlock.CIDR)
		assert.Equal(t, "::/0", policy.Spec.Egress[0].To[1].IPBlock.CIDR)
	}
}
