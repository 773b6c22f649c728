package run

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/live"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/internal/suite"
)

func TestInvalidKubernetesArgumentsAreUsageErrors(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*session){
		"": func(*session) {},
		"--runner and --start-at cannot be combined": func(s *session) { s.runnerNumber = 1 },
		"the operator starts all runners together":   func(s *session) { s.startAt = time.Now() },
		"--script cannot be combined with --on k8s":  func(s *session) { s.Script = "x.js" },
		`got "A_b"`:                            func(s *session) { s.Plan.TestID = "A_b" },
		"its certificates are files":           func(s *session) { s.Suite.Runners.NoKubernetes = "its certificates are files" },
		"requires BACKEND_URL and CLUSTER_URL": func(s *session) { s.Suite.Target.Kind = suite.Cluster },
		"requires BACKEND_URL: no model":       func(s *session) { s.Suite.Target.Kind, s.Plan.BackendURL = suite.Model, "" },
		`PROMPTS must be empty for pods, which do not have that file, got "/p.ndjson"`: func(s *session) { s.Settings = map[string]string{"PROMPTS": "/p.ndjson"} },
	} {
		s := &session{Config: testConfig("http://h")}
		change(s)
		_, err := newKubernetes(s)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, &UsageError{})
	}
}

// MAX_LATE has no flag in churn, and the modules of services for finite read MODEL.
func TestSuiteSettingsWithoutFlags(t *testing.T) {
	for name, value := range map[string]string{"MAX_LATE": "0", "MEAN_HOLD": "3", "BACKEND_URL": "http://elsewhere", "MODEL": "gpt"} {
		t.Setenv(name, value)
	}
	env := (&session{Config: Config{Suite: suiteOf("churn")}}).settings(nil)
	require.Equal(t, []string{"0", "3"}, []string{env["MAX_LATE"], env["MEAN_HOLD"]})
	require.NotContains(t, env, "BACKEND_URL", "only the plan may contain the URL")
	require.Equal(t, "gpt", (&session{Config: Config{Suite: suiteOf("finite")}}).settings(nil)["MODEL"])
}

// Runners export the start time of each action as a metric. They do not get its command, which may contain a secret. On
// Kubernetes the progress of streams comes from k6's metrics.
func TestEnvironmentOfRunners(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{"soak": {"true", ""}, "storm": {"true", ""}, "throughput": {"true", "true"}} {
		for i, on := range []string{"local", "k8s"} {
			s := &session{Config: Config{Suite: suiteOf(name), Local: plan.Local{On: on}}}
			s.actions = []plan.Action{{Name: "deploy", At: time.Minute, Command: "secret"}}
			require.Equal(t, []plan.Action{{Name: "deploy", At: time.Minute}}, s.document(nil).Actions)
			env := s.environment()
			require.Equal(t, []string{"disabled", want[i]}, []string{env["K6_SUMMARY_MODE"], env["K6_NO_THRESHOLDS"]}, name)
		}
	}
	s := &session{Config: Config{Suite: suiteOf("soak"), Script: "own.js", Plan: plan.Plan{Topics: 1, PublishRate: 1}}}
	require.Empty(t, s.environment(), "a script of the user may have its own summary and thresholds")

	require.True(t, s.document(nil).OneClock)
	s.runnerNumber = 2
	require.False(t, s.document(nil).OneClock, "other runners may be on other machines")
	s.runnerNumber, s.On = 0, "k8s"
	require.False(t, s.document(nil).OneClock)
	s.On, s.Plan.PublishRate = "local", 0
	require.False(t, s.document(nil).OneClock, "without a publisher there is no second clock")
}

// A bucket in the cluster is reachable from outside only through a forwarded port.
func TestLivePageCommandReachesTheBucket(t *testing.T) {
	t.Parallel()
	require.Equal(t, "soak live 's3://b/soak/t?region=eu-central-1'", liveCommand("s3://b/soak/t?region=eu-central-1"))
	require.Equal(t, "kubectl port-forward -n ns service/bucket 9000, and soak live 's3://b/t?anonymous=true&endpoint=http%3A%2F%2F127.0.0.1%3A9000'",
		liveCommand("s3://b/t?endpoint=http://bucket.ns.svc:9000&anonymous=true"))
}

func TestUntestedOperatorVersionIsAWarning(t *testing.T) {
	t.Parallel()
	d, operator := newRig(t).inCluster(t)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "k6-operator-controller-manager", Namespace: "k6-operator-system"}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Image: "ghcr.io/grafana/k6-operator:controller-v1.4.0"}}
	require.NoError(t, operator.typed.Tracker().Add(deployment))
	d.checkOperator(t.Context())
	require.Len(t, d.record.Warnings, 1)
	assert.Contains(t, d.record.Warnings[0], "the k6-operator is v1.4.0, older than the tested v1.6.0")
}

// On AWS the runners use an address of the service that this machine cannot reach.
func TestSoakUsesTheAddressOfVia(t *testing.T) {
	t.Setenv("BACKEND_TOKEN", "secret")
	requests := make(chan string, 1)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path + " " + r.Header.Get("Authorization")
		http.NotFound(w, r)
	})
	d := &kubernetes{session: newSession(Config{Plan: plan.Default()})}
	d.Plan.BackendURL = "http://10.20.0.10"
	d.Kubernetes.Via = strings.TrimPrefix(address, "http://")
	require.NoError(t, d.reachTarget(context.Background()))
	assert.Equal(t, "http://10.20.0.10", d.targets[0].URL, "the runners must use the URL of the plan")
	_ = d.targets.Probe(context.Background(), d.Plan.Interval())
	assert.Equal(t, "/healthz Bearer secret", <-requests)
}

// Runners of a suite that makes requests have no counters in k6's REST API, so their progress comes from the
// checkpoints.
func TestRequestProgressFollowsCheckpoints(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(index int, abandoned int64, buckets ...int64) {
		responses := shard.NewResponses()
		responses.States[ledger.ResponseAbandoned], responses.States[ledger.ResponseTruncated] = abandoned, 1
		for _, unix := range buckets {
			responses.Series = append(responses.Series, shard.ResponseBucket{Unix: unix, Started: 1})
		}
		s := &shard.Shard{
			Schema: shard.Schema, Connect: shard.NewHistogram(), FirstMessage: shard.NewHistogram(), Lateness: shard.NewHistogram(), Responses: responses,
			Runner: shard.Runner{TestID: "t", Index: index, Segment: "1/2:1", Script: "s.js", State: shard.Running, EndedUS: 120e6},
		}
		require.NoError(t, shard.Write(filepath.Join(folder, shard.FileName(s.Runner)), s))
	}
	write(1, 4, 100, 105)
	write(2, 5, 100)
	var watch live.Watch
	reports := make(chan []shard.ResponseBucket, 1000)
	c := &checkpoints{
		open: func(ctx context.Context) (store.Store, error) { return store.Open(ctx, folder) },
		onReport: func(index int, p *shard.Progress) {
			watch.Add(index, p)
			if index == 1 {
				reports <- p.Responses
			}
		},
		poll: time.Millisecond, lastUnix: map[int]int64{},
	}
	ctx, stop := context.WithCancel(t.Context())
	var reader sync.WaitGroup
	reader.Go(func() { c.follow(ctx) })
	t.Cleanup(func() { stop(); reader.Wait() })
	requests := func(requests, failed int64) func() bool {
		return func() bool { sum, _ := watch.Total(); return sum.Requests == requests && sum.Failed == failed }
	}
	require.Eventually(t, requests(11, 2), time.Minute, time.Millisecond)
	require.Len(t, <-reports, 2)
	write(1, 8, 100, 105, 110)
	require.Eventually(t, requests(15, 2), time.Minute, time.Millisecond)
	stop()
	reader.Wait()
	close(reports)
	for buckets := range reports {
		require.NotEqual(t, int64(100), buckets[0].Unix, "a complete bucket must be reported once")
	}
}
