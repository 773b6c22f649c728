//go:build aws

package check

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/offline"
)

// TestFilesAreReproducible builds and collects the files of the hosts twice, because a changed file replaces the hosts.
// The test replaces the files that GitHub and container registries would serve.
func TestFilesAreReproducible(t *testing.T) {
	t.Parallel()
	offline.NeedDocker(t, "compose", "buildx")
	dir := t.TempDir()
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	for name, text := range map[string]string{
		"k3s": "k3s", "k3s-airgap-images-amd64.tar.zst": "images", "bundle.yaml": "kind: Bundle\n", "Dockerfile": "FROM scratch\nCOPY k3s /\n",
		"sha256sum-amd64.txt": sum("k3s") + "  k3s\n" + sum("images") + "  k3s-airgap-images-amd64.tar.zst\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	run(t, dir, "docker", "build", "--quiet", "--tag", "soak-test/runner:1", ".")
	out := filepath.Join(dir, "out")
	variables := []string{
		"OUT=" + out, "K3S_RELEASE=file://" + dir, "OPERATOR_MANIFEST=file://" + dir + "/bundle.yaml", "OPERATOR_SHA256=" + sum("kind: Bundle\n"),
		"OPERATOR_IMAGE=soak-test/runner:1", "RUNNER_IMAGE=soak-test/runner:1", "STACK_IMAGES=sse-soak/backend:local sse-soak/nginxconf:local",
	}
	collect := func() map[string]string {
		buildStackImages(t)
		run(t, root, "env", append(variables, "infra/terraform/files", "amd64")...)
		sums := map[string]string{}
		found, err := filepath.Glob(filepath.Join(out, "*", "*"))
		require.NoError(t, err)
		for _, file := range found {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			sums[strings.TrimPrefix(file, out+"/")] = sum(string(text))
		}
		return sums
	}
	first := collect()
	for _, name := range []string{
		"stack/files.tar.gz", "stack/image-sse-soak-backend-local.tar.gz", "runner/k3s", "runner/operator.yaml", "runner/k3s-airgap-images-amd64.tar.zst", "runner/image-soak-test-runner-1.tar.gz",
	} {
		assert.Contains(t, first, name)
	}
	contents := run(t, ".", "tar", "-tzf", filepath.Join(out, "stack/files.tar.gz"))
	for _, name := range []string{"compose.yaml\n", ".env.example\n", "infra/prometheus/rules/alerts.yml\n", "grafana/dashboards/"} {
		assert.Contains(t, contents, name)
	}
	assert.NotRegexp(t, `(?m)\.go$|^\.env$|^certs/`, contents, "the archive must not contain code or secrets")
	require.NoError(t, os.WriteFile(filepath.Join(out, "stack/image-of-yesterday.tar.gz"), nil, 0o600))
	assert.Equal(t, first, collect())

	require.NoError(t, os.Remove(filepath.Join(out, "runner/operator.yaml")))
	variables = append(variables, "OPERATOR_SHA256="+sum("another"), "infra/terraform/files", "amd64")
	cmd := exec.CommandContext(t.Context(), "env", variables...)
	cmd.Dir = root
	require.Error(t, cmd.Run(), "a download with a wrong checksum must be rejected")
	assert.NoFileExists(t, filepath.Join(out, "runner/operator.yaml"))
}
