package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestWhatMakesNoSenseOnKubernetesIsWrongUsage(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*settings){
		"--runner and --start-at are for machines": func(s *settings) { s.part = 1 },
		"the operator starts all runners together": func(s *settings) { s.startAt = time.Now() },
		"BACKEND_URL names several services":       func(s *settings) { s.plan.BackendURL = "http://a,http://b" },
		"--script is the one in the image":         func(s *settings) { s.script = "x.js" },
		`TESTID is "A_b"`:                          func(s *settings) { s.plan.TestID = "A_b" },
	} {
		s := settings{plan: plan.Default()}
		s.plan.TestID = "t"
		require.NoError(t, s.checkForCluster())
		change(&s)
		require.ErrorContains(t, s.checkForCluster(), want)
	}
}

// No cluster is touched by a command that cannot be understood, and where there is none that is
// an invalid run, not a failed one.
func TestExitCodesOnKubernetes(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	out := t.TempDir()
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"run", "--on", "moon", "--out", out}, exitUsage},
		{[]string{"run", "--on", "k8s", "--testid", "A_b", "--out", out}, exitUsage},
		{[]string{"run", "--on", "k8s", "--overlay", "nosuch", "--out", out}, exitUsage},
		{[]string{"run", "--on", "k8s", "--overlay", "../../infra/k6-operator/overlays/local", "--out", out}, 2},
		{[]string{"attach", "t", "--out", out}, 2},
		{[]string{"attach", "--out", out}, exitUsage},
		{[]string{"bucket"}, exitUsage},
	} {
		assert.Equal(t, c.want, run(c.args), "%v", c.args)
	}
}
