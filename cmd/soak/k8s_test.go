package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A command with invalid arguments does not connect to a cluster. Without a cluster a run is invalid, not failed.
func TestExitCodesOnKubernetes(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	out := t.TempDir()
	t.Cleanup(func() {
		files, err := os.ReadDir(out)
		assert.NoError(t, err)
		assert.Empty(t, files, "a command that cannot start must leave no folder")
	})
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"run", "--on", "moon", "--out", out}, exitUsage},
		{[]string{"run", "--live", ":8080", "--out", out}, exitUsage}, // the address needs an equals sign
		{[]string{"run", "--on", "k8s", "--testid", "A_b", "--out", out}, exitUsage},
		{[]string{"run", "--on", "k8s", "--overlay", "nosuch", "--out", out}, exitUsage},
		{[]string{"run", "--on", "k8s", "--overlay", "../../infra/k6-operator/overlays/local", "--out", out}, 2},
		{[]string{"run", "churn", "--on", "moon", "--out", out}, exitUsage},
		{[]string{"run", "handshake", "--on", "k8s", "--testid", "t", "--out", out}, exitUsage},
		{[]string{"run", "cluster", "--on", "k8s", "--testid", "t", "--out", out}, exitUsage},
		{[]string{"run", "capacity", "--runner", "1/2", "--testid", "t", "--backend-url", "http://h", "--out", out}, exitUsage},
		{[]string{"run", "churn", "--runner", "1/2", "--out", out}, exitUsage},
		{[]string{"attach", "t", "--out", out}, exitUsage}, // no such run, on this machine or in a cluster
		{[]string{"attach", "--out", out}, exitUsage},
	} {
		assert.Equal(t, c.want, execute(c.args), "%v", c.args)
	}
}
