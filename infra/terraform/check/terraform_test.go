//go:build aws

package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/offline"
	"github.com/sse-soak/sse-soak/test/untested"
)

const (
	root   = "../../.." // folder of the repository
	source = ".."       // folder of the Terraform code
)

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

func needs(t *testing.T, tool, remedy string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err == nil {
		return
	}
	untested.SkipMissing(t, tool+" is not installed: "+remedy)
}

// copyCode copies the Terraform code, so that neither state nor lock file gets into the repository.
func copyCode(t *testing.T, dir string) {
	t.Helper()
	offline.NeedTerraform(t)
	require.NoError(t, os.CopyFS(dir, os.DirFS(source)))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "check")))
}

// standIn is the Terraform code, initialized once for all tests with a stand-in for the provider.
var standIn struct {
	once   sync.Once
	folder string // folder of the code and the stand-in
	code   string // folder of the code; "": init failed
	env    []string
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(standIn.folder)
	os.Exit(code)
}

// initCopy returns a copy of the code in standIn.
func initCopy(t *testing.T) (dir string) {
	t.Helper()
	standIn.once.Do(func() {
		offline.NeedTerraform(t)
		var err error
		standIn.folder, err = os.MkdirTemp("", "terraform-")
		require.NoError(t, err)
		code := filepath.Join(standIn.folder, "code")
		copyCode(t, code)
		require.NoError(t, os.RemoveAll(filepath.Join(code, ".terraform.lock.hcl"))) // it locks the real provider
		standIn.env = offline.Terraform(t, root, filepath.Join(standIn.folder, "mirror"))
		terraform(t, code, "init", "-backend=false", "-input=false", "-no-color")
		t.Log(strings.TrimSpace(terraform(t, code, "version")))
		standIn.code = code
	})
	offline.NeedTerraform(t)
	require.NotEmpty(t, standIn.code, "terraform init failed in another test")
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(standIn.code)))
	return dir
}

// terraform runs terraform with the stand-in and returns its output.
func terraform(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return run(t, dir, "env", slices.Concat(standIn.env, []string{"terraform"}, args)...)
}

// planTests is the file with the tests of the root module with valid settings. userData runs these tests.
const planTests = "tests/plan.tftest.hcl"

func TestTerraform(t *testing.T) {
	t.Parallel()
	dir := initCopy(t)
	terraform(t, dir, "fmt", "-check", "-diff", "-recursive")
	terraform(t, dir, "validate", "-no-color")
	files, err := filepath.Glob(filepath.Join(dir, "tests/*.tftest.hcl"))
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, planTests) })
	args := []string{"test", "-no-color"}
	for _, file := range files {
		args = append(args, "-filter=tests/"+filepath.Base(file))
	}
	requirePassed(t, terraform(t, dir, args...), files...)
}

// TestRealProvider checks the code with the schema of the real provider.
func TestRealProvider(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	copyCode(t, dir)
	init := exec.CommandContext(t.Context(), "terraform", "init", "-backend=false", "-input=false", "-no-color")
	init.Dir = dir
	if output, err := init.CombinedOutput(); err != nil {
		t.Logf("%s", output)
		untested.Skip(t, "the schema of the real AWS provider, because terraform cannot download it")
	}
	run(t, dir, "terraform", "validate", "-no-color")
	files, err := filepath.Glob(filepath.Join(dir, "tests/*.tftest.hcl"))
	require.NoError(t, err)
	requirePassed(t, run(t, dir, "terraform", "test", "-no-color"), files...)
}

// requirePassed asserts that each run of the test files passed. `terraform test` also succeeds without any test.
func requirePassed(t *testing.T, output string, files ...string) {
	t.Helper()
	runs := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		runs += len(regexp.MustCompile(`(?m)^run "`).FindAll(text, -1))
	}
	require.Positive(t, runs)
	require.Contains(t, output, fmt.Sprintf("Success! %d passed, 0 failed.", runs))
}

// rendered is the result of userData.
var rendered struct {
	once  sync.Once
	hosts map[string]string
}

// userData returns the user data of each host, by the name of its module, as `terraform test` renders it.
func userData(t *testing.T) map[string]string {
	t.Helper()
	dir := initCopy(t)
	rendered.once.Do(func() {
		output := terraform(t, dir, "test", "-json", "-verbose", "-filter="+planTests)
		requirePassed(t, output, filepath.Join(dir, planTests))
		hosts := map[string]string{}
		for line := range strings.SplitSeq(output, "\n") {
			var message struct {
				Run   string `json:"@testrun"`
				State *struct {
					Root module `json:"root_module"`
				} `json:"test_state"`
			}
			if json.Unmarshal([]byte(line), &message) == nil && message.State != nil && message.Run == "everything" {
				message.State.Root.collect(hosts)
			}
		}
		rendered.hosts = hosts
	})
	require.Len(t, rendered.hosts, 3, "stack, server and agents must each have user data")
	return rendered.hosts
}

// A module is a module of the state that `terraform test -json -verbose` prints.
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

// collect adds the user data of each host in the module, by the address of the module.
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
