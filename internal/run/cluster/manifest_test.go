package cluster

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yannh/kubeconform/pkg/validator"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const infra = "../../../infra/k6-operator"

func buildTestOverlay(t *testing.T, name string) *Manifests {
	t.Helper()
	m, err := Build(filepath.Join(infra, name))
	require.NoError(t, err)
	return m
}

func buildOverlay(t *testing.T, name string) *Manifests {
	t.Helper()
	return buildTestOverlay(t, filepath.Join("overlays", name))
}

// The base and each overlay, with a plan or without, pass the checks of the API server and of the operator.
func TestOverlaysAreValid(t *testing.T) {
	t.Parallel()
	schema := publishedSchema(t)
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, name := range []string{"base", "overlays/local", "overlays/aws", "overlays/scale", "overlays/k3s", prometheusOverlay} {
		for _, withPlan := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " with a plan"}[withPlan], func(t *testing.T) {
				t.Parallel()
				m := buildTestOverlay(t, name)
				if withPlan {
					_, err := m.RenewBackend(testPlan())
					require.NoError(t, err)
					launch := launchOf(testPlan(), "s3://bucket/t?region=eu-central-1", true)
					launch.Plan.Service, launch.Module = ModulePath("/home/a/mine.js"), "export default {}"
					require.NoError(t, m.Render(launch))
				}
				assert.Empty(t, kubeconformErrors(t, m.TestRun))
				assert.Empty(t, unknownFields(schema, m.TestRun.Object["spec"], "spec"))
				for _, o := range m.Setup { // the API server rejects, or silently drops, fields that the Go types do not have
					text, err := o.MarshalJSON()
					require.NoError(t, err)
					_, _, err = decoder.Decode(text, nil, nil)
					require.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
					if o.GetKind() != "Namespace" {
						assert.Equal(t, "sse-soak", o.GetNamespace(), "%s %s", o.GetKind(), o.GetName())
					}
				}
				for _, probe := range []string{"livenessProbe", "readinessProbe"} { // the operator's default probes kill a runner that has no CPU for 30 s
					p, _, err := unstructured.NestedMap(m.TestRun.Object, "spec", "runner", probe)
					require.NoError(t, err)
					require.Contains(t, p, "tcpSocket", probe)
					assert.GreaterOrEqual(t, p["periodSeconds"].(int64)*p["failureThreshold"].(int64), int64(600), probe)
				}
			})
		}
	}
}

func kubeconformErrors(t *testing.T, o *unstructured.Unstructured) (errs []string) {
	t.Helper()
	v, err := validator.New([]string{infra + "/schema/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"}, validator.Opts{Strict: true})
	require.NoError(t, err)
	text, err := o.MarshalJSON()
	require.NoError(t, err)
	for _, result := range v.Validate("testrun", io.NopCloser(bytes.NewReader(text))) {
		if result.Status != validator.Valid {
			errs = append(errs, result.Err.Error())
		}
	}
	return errs
}

func TestKubeconformFindsMistakes(t *testing.T) {
	t.Parallel()
	for name, path := range map[string][]string{
		"a misspelled field":           {"spec", "paralelism"},
		"a misspelled nested field":    {"spec", "runner", "resources", "limits", "memroy"},
		"an image with the tag latest": {"spec", "starter", "image"},
	} {
		m := buildOverlay(t, "local")
		require.NoError(t, unstructured.SetNestedField(m.TestRun.Object, "sse-soak/k6:latest", path...))
		assert.NotEmpty(t, kubeconformErrors(t, m.TestRun), name)
	}
}

// publishedSchema returns the schema of a TestRun's spec in the CRD that was published with the operator v1.6.0.
func publishedSchema(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("testdata/k6.io_testruns.yaml")
	require.NoError(t, err)
	var crd map[string]any
	require.NoError(t, yaml.Unmarshal(text, &crd))
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	require.NoError(t, err)
	schema, found, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec")
	require.NoError(t, err)
	require.True(t, found)
	return schema
}

// unknownFields returns the paths of the fields of a value that are not in a structural schema.
func unknownFields(schema map[string]any, value any, path string) (out []string) {
	switch v := value.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		additional, hasAdditional := schema["additionalProperties"].(map[string]any)
		for name, field := range v {
			switch known, ok := properties[name].(map[string]any); {
			case ok:
				out = append(out, unknownFields(known, field, path+"."+name)...)
			case hasAdditional:
				out = append(out, unknownFields(additional, field, path+"."+name)...)
			default:
				out = append(out, path+"."+name)
			}
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, item := range v {
			out = append(out, unknownFields(items, item, path+"[]")...)
		}
	}
	return out
}

func TestInvalidOverlaysAreRejected(t *testing.T) {
	t.Parallel()
	_, err := Build(t.TempDir())
	require.ErrorContains(t, err, "unable to find one of 'kustomization.yaml'")
	empty := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(empty, "kustomization.yaml"), []byte("namePrefix: a-\nresources: [x.yaml]\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(empty, "x.yaml"), []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"), 0o600))
	_, err = Build(empty)
	require.ErrorContains(t, err, "has no TestRun")
}
