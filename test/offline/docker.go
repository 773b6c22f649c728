// Package offline provides stand-ins for container images and for Terraform's AWS provider. With them, tests need no
// access to registries or to AWS. The stand-in programs are in subfolders, as separate modules.
package offline

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
			untested.SkipMissing(t, fmt.Sprintf("Docker has no plugin %s; install it (https://docs.docker.com/compose/install/linux/), or run test/offline/docker/plugins as root on Debian 12", plugin))
		}
	}
}

// Images makes the images of compose.yaml available to Docker. env is the path of an .env file. If no registry
// responds, the images are stand-ins, and the image of Grafana is missing. real reports whether all images are the real
// ones. Images calls untested.SkipMissing if an image is not available.
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

const providerVersion = "6.66.0" // version of the schema in the stand-in

// NeedTerraform calls untested.SkipMissing if terraform is not installed.
func NeedTerraform(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("terraform"); err != nil {
		untested.SkipMissing(t, "terraform is not installed; install it (https://developer.hashicorp.com/terraform/install)")
	}
}

// Terraform builds, in the folder mirror, a stand-in for the AWS provider that sends no requests to AWS. It returns the
// environment variables that make terraform use the stand-in. repository is the path of the repository's root.
func Terraform(t *testing.T, repository, mirror string) (env []string) {
	t.Helper()
	NeedTerraform(t)
	folder := filepath.Join(mirror, "registry.terraform.io/hashicorp/aws", providerVersion, runtime.GOOS+"_"+runtime.GOARCH)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "terraform-provider-aws_v"+providerVersion), ".")
	build.Dir = filepath.Join(repository, "test/offline/terraform")
	build.Env = append(os.Environ(), "GOWORK=off")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "build the stand-in for the AWS provider: %s", output)
	config := filepath.Join(mirror, "cli.tfrc")
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror)
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	t.Log("STAND-IN, not the real AWS provider: it has the schema of " + providerVersion + " and sends no request to AWS")
	return []string{"TF_CLI_CONFIG_FILE=" + config, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1"}
}
