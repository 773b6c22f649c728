//go:build aws

package check

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/offline"
	"github.com/sse-soak/sse-soak/test/untested"
)

const (
	root   = "../../.." // of the repository
	source = ".."       // the Terraform code
)

// run runs a command in a folder and returns its output.
func run(t *testing.T, dir string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "%s %s\n%s", name, strings.Join(args, " "), &out)
	return out.String()
}

// needs skips a test if the tool is not installed.
func needs(t *testing.T, tool, remedy string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err == nil {
		return
	}
	untested.SkipMissing(t, tool+" is not installed: "+remedy)
}

// copyCode returns a copy of the Terraform code, so that neither state nor lock file gets into the repository.
func copyCode(t *testing.T) string {
	t.Helper()
	offline.NeedTerraform(t)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(source)))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "check")))
	return dir
}

// initCopy returns a copy after `terraform init` with the stand-in for the provider.
func initCopy(t *testing.T) string {
	t.Helper()
	dir := copyCode(t)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".terraform.lock.hcl"))) // of the real provider
	offline.Terraform(t, root)
	run(t, dir, "terraform", "init", "-backend=false", "-input=false", "-no-color")
	t.Log(strings.TrimSpace(run(t, dir, "terraform", "version")))
	return dir
}

func TestTerraform(t *testing.T) {
	dir := initCopy(t)
	run(t, dir, "terraform", "fmt", "-check", "-diff", "-recursive")
	checkCode(t, dir)
}

// TestRealProvider checks the code with the schema of the real provider.
func TestRealProvider(t *testing.T) {
	dir := copyCode(t)
	init := exec.CommandContext(t.Context(), "terraform", "init", "-backend=false", "-input=false", "-no-color")
	init.Dir = dir
	if output, err := init.CombinedOutput(); err != nil {
		t.Logf("%s", output)
		untested.Skip(t, "the schema of the real AWS provider, because terraform cannot download it")
	}
	checkCode(t, dir)
}

// checkCode checks that the code is valid and that all its tests pass.
func checkCode(t *testing.T, dir string) {
	t.Helper()
	run(t, dir, "terraform", "validate", "-no-color")
	output := run(t, dir, "terraform", "test", "-no-color")
	passed := regexp.MustCompile(`(?m)^Success! (\d+) passed, 0 failed\.$`).FindStringSubmatch(output)
	require.NotNil(t, passed, output) // terraform test also succeeds without any test
	require.GreaterOrEqual(t, len(passed[1]), 2, "only %s runs", passed[1])
	t.Log(passed[0])
}

// rendered caches the result of userData, which is equal in all tests. Tests that use it must not run in parallel.
var rendered map[string]string

// userData returns the user data of each host, by the name of its module, as `terraform test` renders it.
func userData(t *testing.T) map[string]string {
	t.Helper()
	if rendered != nil {
		return rendered
	}
	output := run(t, initCopy(t), "terraform", "test", "-json", "-verbose", "-filter=tests/plan.tftest.hcl")
	found := map[string]string{}
	for line := range strings.SplitSeq(output, "\n") {
		var message struct {
			Run   string `json:"@testrun"`
			State *struct {
				Root module `json:"root_module"`
			} `json:"test_state"`
		}
		if json.Unmarshal([]byte(line), &message) == nil && message.State != nil && message.Run == "everything" {
			message.State.Root.collect(found)
		}
	}
	require.Len(t, found, 3, "one each for stack, server and agent")
	rendered = found
	return found
}

// A module is a module in the output of `terraform show -json`.
type module struct {
	Address   string
	Resources []struct {
		Type   string
		Values struct {
			UserData string `json:"user_data"`
		}
	}
	Children []module `json:"child_modules"`
}

// collect adds the user data of each host in the module, by its address.
func (m module) collect(into map[string]string) {
	for _, r := range m.Resources {
		if r.Type == "aws_instance" {
			into[strings.NewReplacer("module.", "", "[0]", "").Replace(m.Address)] = r.Values.UserData
		}
	}
	for _, c := range m.Children {
		c.collect(into)
	}
}
