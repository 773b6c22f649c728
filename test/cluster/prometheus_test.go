//go:build k8s

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/promserver"
)

// Credentials for the Prometheus of these tests, and the hash in its configuration.
const (
	user           = "soak"
	password       = "a-password/of+the=test"
	hashedPassword = "$2a$04$XXfr7ZDylYHTFW40Xkkg0.f5nYj1dVbXGeTtWMdZcdL1JUAzzQrn."
)

// A prometheusServer is a Prometheus server outside the cluster.
type prometheusServer struct {
	prometheus.API
	address string // address for the pods
}

// startPrometheus starts a Prometheus server on this machine, at an address that the pods can reach.
func startPrometheus(t *testing.T, k *kube) *prometheusServer {
	t.Helper()
	web := filepath.Join(t.TempDir(), "web.yml")
	require.NoError(t, os.WriteFile(web, []byte("basic_auth_users: {"+user+": '"+hashedPassword+"'}\n"), 0o600))
	address := promserver.Run(t, k.hostAddress(t), "scrape_configs: []", "--web.config.file="+web)
	client, err := api.NewClient(api.Config{Address: "http://" + url.UserPassword(user, password).String() + "@" + address})
	require.NoError(t, err)
	return &prometheusServer{API: prometheus.NewAPI(client), address: address}
}

// setEnvironment sets the URL and the credentials of the Prometheus server in the environment of soak.
func (w *prometheusServer) setEnvironment(t *testing.T, password string) {
	t.Helper()
	t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", w.url())
	t.Setenv("K6_PROMETHEUS_RW_USERNAME", user)
	t.Setenv("K6_PROMETHEUS_RW_PASSWORD", password)
}

func (w *prometheusServer) url() string { return "http://" + w.address + "/api/v1/write" }

// valuesByRunner returns the last value of a metric for each runner of a run. The keys are values of the tag
// instance_id, which the operator sets.
func (w *prometheusServer) valuesByRunner(t *testing.T, metric, testid string) map[string]float64 {
	t.Helper()
	result, _, err := w.Query(t.Context(), fmt.Sprintf(`sum by (runner, instance_id) (last_over_time(%s{testid=%q}[10m]))`, metric, testid), time.Now())
	require.NoError(t, err)
	values := map[string]float64{}
	for _, series := range result.(model.Vector) {
		values[string(series.Metric["instance_id"])] = float64(series.Value)
	}
	return values
}

func sum(values map[string]float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// Each runner writes the metrics of the dashboards. The password is only in the secret of the run, which is removed
// with the run.
func TestRunnersWriteToPrometheus(t *testing.T) {
	c := connect(t)
	w := startPrometheus(t, c)
	w.setEnvironment(t, password)
	s := c.soak(t, "watched")
	s.awaitOutput(t, "all runners have started")
	secret, err := c.CoreV1().Secrets(namespace).Get(t.Context(), cluster.Name(s.testid)+"-token", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, password, string(secret.Data["K6_PROMETHEUS_RW_PASSWORD"]))
	assert.NotContains(t, c.publicObjects(t), password)
	assert.Equal(t, 0, s.wait(t), "%s", s.output())

	v := s.verdict(t)
	assert.Equal(t, verdict.Pass, v.Verdict)
	assert.NotContains(t, strings.Join(v.Warnings, "\n"), "Prometheus")
	received := w.valuesByRunner(t, "k6_soak_noops_total", s.testid)
	assert.Len(t, received, 4, "values by runner: %v", received)
	assert.EqualValues(t, v.Messages.Received, sum(received))
	for runner, value := range w.valuesByRunner(t, "k6_soak_streams_planned", s.testid) {
		assert.EqualValues(t, 100, value, "runner %s must report the plan of the whole run", runner)
	}
	assert.Len(t, w.valuesByRunner(t, "k6_sse_connecting_p99", s.testid), 4, "each runner must write the trend stats that the dashboards query")
	requireAbsent(t, filepath.Join(s.out, s.testid), password)
	assert.NotContains(t, s.output(), password)
	c.requireNothingLeft(t)
	require.Eventually(t, func() bool {
		_, err := c.CoreV1().Secrets(namespace).Get(t.Context(), secret.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, timeout, 500*time.Millisecond, "the secret must be removed with the run")
}

// Writes that a Prometheus server rejects are reported, and do not change the verdict.
func TestPrometheusRejectsWrites(t *testing.T) {
	c := connect(t)
	startPrometheus(t, c).setEnvironment(t, "another")
	s := c.soak(t, "refused")
	assert.Equal(t, 0, s.wait(t), "%s", s.output())
	v := s.verdict(t)
	assert.Equal(t, verdict.Pass, v.Verdict)
	assert.Equal(t, 100, v.Connections.Completed)
	assert.Regexp(t, `remote writes of 4 runners to Prometheus failed \(the last: .*401`, strings.Join(v.Warnings, "\n"))
	beforeVerdict, _, _ := strings.Cut(s.output(), "PASS")
	assert.Contains(t, beforeVerdict, "remote write", "the rejection must be reported during the run")
	c.requireNothingLeft(t)
}

// Runners of an overlay with the component for Prometheus write metrics even if `kubectl apply -k` starts them.
func TestPrometheusOverlay(t *testing.T) {
	c := connect(t)
	w := startPrometheus(t, c)
	secrets := c.CoreV1().Secrets(namespace)
	_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "soak-prometheus"}, StringData: map[string]string{
		"K6_PROMETHEUS_RW_SERVER_URL": w.url(), "K6_PROMETHEUS_RW_USERNAME": user, "K6_PROMETHEUS_RW_PASSWORD": password,
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = secrets.Delete(context.Background(), "soak-prometheus", metav1.DeleteOptions{}) })
	m, err := cluster.Build("testdata/watched")
	require.NoError(t, err)
	id := fmt.Sprintf("by-hand-%d", time.Now().Unix()%1e6)
	m.TestRun.SetName(cluster.Name(id))
	for _, pod := range []string{"runner", "initializer"} {
		set(t, m.TestRun, pod, map[string]string{"TESTID": id, "CONNECTIONS": "20", "CONNECTIONS_PER_VU": "5", "SECONDS": "20", "NOOP_INTERVAL": "5"})
	}
	require.NoError(t, c.Create(t.Context(), m.TestRun, cluster.Launch{Document: plan.Document{Plan: plan.Plan{TestID: id}}}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		assert.NoError(t, c.Delete(ctx, namespace, cluster.Name(id)))
	})
	require.Eventually(t, func() bool { return len(w.valuesByRunner(t, "k6_soak_streams_planned", id)) == 2 }, timeout, time.Second,
		"Prometheus must have metrics of both runners")
}

// set changes environment variables of a kind of pod in a TestRun. It adds no variable.
func set(t *testing.T, run *unstructured.Unstructured, pod string, values map[string]string) {
	t.Helper()
	list, _, err := unstructured.NestedSlice(run.Object, "spec", pod, "env")
	require.NoError(t, err)
	for _, e := range list {
		if value, ok := values[e.(map[string]any)["name"].(string)]; ok {
			e.(map[string]any)["value"] = value
		}
	}
	require.NoError(t, unstructured.SetNestedSlice(run.Object, list, "spec", pod, "env"))
}

// publicObjects returns, as JSON, the TestRuns, Jobs and pods, which an account without access to secrets can read.
func (k *kube) publicObjects(t *testing.T) string {
	t.Helper()
	runs, err := k.Dynamic.Resource(schema.GroupVersionResource{Group: "k6.io", Version: "v1alpha1", Resource: "testruns"}).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	jobs, err := k.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	pods, err := k.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	text, err := json.Marshal([]any{runs, jobs, pods})
	require.NoError(t, err)
	return string(text)
}

func requireAbsent(t *testing.T, folder, text string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		assert.NotContains(t, string(content), text, path)
		return err
	}))
}
