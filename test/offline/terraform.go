package offline

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

const providerVersion = "6.66.0" // version of the schema in the stand-in

// NeedTerraform calls untested.SkipMissing if terraform is not installed.
func NeedTerraform(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("terraform"); err != nil {
		untested.SkipMissing(t, "terraform is not installed: https://developer.hashicorp.com/terraform/install")
	}
}

// Terraform builds a stand-in for the AWS provider that sends no requests to AWS, in the folder mirror. It returns the
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
