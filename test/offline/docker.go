// Package offline has stand-ins for container images and for Terraform's AWS provider. With them, tests need no access
// to registries or to AWS. The stand-in programs are in subfolders, as separate modules.
package offline

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

// NeedDocker calls untested.SkipMissing if Docker does not respond or lacks one of the plugins.
func NeedDocker(t *testing.T, plugins ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), "docker", "info", "--format", "{{.ServerVersion}}").CombinedOutput(); err != nil {
		t.Logf("docker info: %v: %s", err, output)
		untested.SkipMissing(t, "Docker does not respond")
	}
	for _, plugin := range plugins {
		if output, err := exec.CommandContext(t.Context(), "docker", plugin, "version").CombinedOutput(); err != nil {
			t.Logf("docker %s: %v: %s", plugin, err, output)
			untested.SkipMissing(t, fmt.Sprintf("Docker has no plugin %s: https://docs.docker.com/compose/install/linux/, or as root on Debian 12 test/offline/docker/plugins", plugin))
		}
	}
}

// Images makes the images of compose.yaml available to Docker. env is the path of an .env file. If no registry
// responds, the images are stand-ins, and the image of Grafana is missing. real reports whether all images are the real
// ones.
func Images(t *testing.T, repository, env string) (real bool) {
	t.Helper()
	const exitUnavailable = 3
	script, err := filepath.Abs(filepath.Join(repository, "test/offline/docker/images"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	start := time.Now()
	cmd := exec.CommandContext(ctx, script, env)
	output, err := cmd.CombinedOutput()
	t.Logf("test/offline/docker/images ended after %v:\n%s", time.Since(start).Round(time.Second), output)
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exitUnavailable {
		untested.SkipMissing(t, "the images of the stack are not available: "+string(output))
	}
	require.NoError(t, err, "%s", script)
	if strings.Contains(string(output), "all images are the real ones") {
		return true
	}
	untested.Note(t, "the real images of the stack, because no registry answers: Grafana is missing, and the others are stand-ins")
	return false
}
