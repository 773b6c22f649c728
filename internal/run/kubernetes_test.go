package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/suite"
)

func TestInvalidKubernetesArgumentsAreUsageErrors(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*session){
		"--runner and --start-at cannot be combined": func(s *session) { s.part = 1 },
		"the operator starts all runners together":   func(s *session) { s.startAt = time.Now() },
		"--script cannot be combined with --on k8s":  func(s *session) { s.Script = "x.js" },
		`got "A_b"`:                            func(s *session) { s.Plan.TestID = "A_b" },
		"its certificates are files":           func(s *session) { s.Suite.Runners.NoKubernetes = "its certificates are files" },
		"requires BACKEND_URL and CLUSTER_URL": func(s *session) { s.Suite.Target.Kind = suite.Cluster },
	} {
		s := newSession(Config{Suite: suite.Default(), Plan: plan.Default(), Local: plan.Local{On: "k8s"}})
		s.Plan.TestID = "t"
		_, err := newDriver(s)
		require.NoError(t, err)
		change(s)
		_, err = newDriver(s)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, &UsageError{})
	}
}

// MAX_LATE has no flag in churn.
func TestSuiteSettingsWithoutFlags(t *testing.T) {
	t.Setenv("MAX_LATE", "0")
	t.Setenv("MEAN_HOLD", "3")
	t.Setenv("BACKEND_URL", "http://elsewhere")
	churn, err := suite.ByName(plan.Plan{Suite: "churn"})
	require.NoError(t, err)
	env := newSession(Config{Suite: churn}).settings(nil)
	require.Equal(t, []string{"0", "3"}, []string{env["MAX_LATE"], env["MEAN_HOLD"]})
	require.NotContains(t, env, "BACKEND_URL", "the plan has it")
}

// Runners publish the start of each action. Its command may contain a secret, so they do not get it.
func TestRunnersGetTheTimesOfActions(t *testing.T) {
	t.Parallel()
	s := newSession(Config{})
	require.NotContains(t, s.environment(), plan.ActionsVariable)
	s.actions = []plan.Action{{Name: "deploy", At: time.Minute, Command: "secret"}}
	require.Equal(t, "1m0s=deploy", s.environment()[plan.ActionsVariable])
}

// On Kubernetes the progress of streams comes from k6's metrics.
func TestStreamsOnKubernetesKeepTheMetricsOfK6(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{"storm": {"true", ""}, "throughput": {"true", "true"}} {
		kind, err := suite.ByName(plan.Plan{Suite: name})
		require.NoError(t, err)
		for i, on := range []string{"local", "k8s"} {
			env := newSession(Config{Suite: kind, Local: plan.Local{On: on}}).environment()
			require.Equal(t, []string{"disabled", want[i]}, []string{env["K6_SUMMARY_MODE"], env["K6_NO_THRESHOLDS"]}, name)
		}
	}
}

// A bucket in the cluster cannot be reached from outside of it.
func TestLivePageCommandReachesTheBucket(t *testing.T) {
	t.Parallel()
	require.Equal(t, "soak live 's3://b/soak/t?region=eu-central-1'", liveCommand("s3://b/soak/t?region=eu-central-1"))
	require.Equal(t, "kubectl port-forward -n ns service/bucket 9000, and soak live 's3://b/t?anonymous=true&endpoint=http%3A%2F%2F127.0.0.1%3A9000'",
		liveCommand("s3://b/t?endpoint=http://bucket.ns.svc:9000&anonymous=true"))
}

// Pods have neither the files of this machine nor its model.
func TestFiniteOnKubernetesRejectsLocalFiles(t *testing.T) {
	t.Setenv("MODEL", "gpt")
	finite, err := suite.ByName(plan.Plan{Suite: "finite"})
	require.NoError(t, err)
	_, err = newKubernetes(newSession(Config{Suite: finite}))
	require.ErrorContains(t, err, "requires BACKEND_URL")
	_, err = newKubernetes(newSession(Config{Suite: finite, Settings: []string{"PROMPTS=/p.ndjson"}}))
	require.ErrorContains(t, err, `PROMPTS must be empty for pods, which do not have that file, got "/p.ndjson"`)
	require.Equal(t, "gpt", newSession(Config{Suite: finite}).settings(nil)["MODEL"])
}
