//go:build aws

package check

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/sse-soak/sse-soak/test/offline"
)

func TestTflint(t *testing.T) {
	t.Parallel()
	config, err := filepath.Abs(filepath.Join(source, ".tflint.hcl"))
	require.NoError(t, err)
	run(t, source, "go", "run", "github.com/terraform-linters/tflint@v0.64.0", "--recursive", "--config", config)
}

// TestCheckov fails for each finding that no comment in the code suppresses with a reason.
func TestCheckov(t *testing.T) {
	t.Parallel()
	needs(t, "checkov", "pipx install checkov==3.3.30")
	output := run(t, source, "checkov", "-d", ".", "--framework", "terraform", "--skip-download", "--compact", "--quiet")
	require.Contains(t, output, "Failed checks: 0")
	require.NotContains(t, output, "Parsing errors", "checkov must be able to read each file")
	t.Log(strings.TrimSpace(output))
}

func TestScripts(t *testing.T) {
	t.Parallel()
	needs(t, "shellcheck", "apt-get install shellcheck")
	scripts, err := filepath.Glob(filepath.Join(source, "modules/*/*.sh"))
	require.NoError(t, err)
	require.Len(t, scripts, 8)
	for _, s := range scripts {
		run(t, filepath.Dir(s), "shellcheck", "-x", filepath.Base(s))
	}
}

// TestUserData checks the rendered user data of the hosts. EC2 accepts at most 16 KiB.
func TestUserData(t *testing.T) {
	t.Parallel()
	for module, text := range userData(t) {
		assert.Less(t, len(text), 16<<10, module)
		assert.True(t, strings.HasPrefix(text, "#cloud-config\n"), module)
		var config struct {
			Files []struct{ Path, Content, Permissions string } `yaml:"write_files"`
			Run   [][]string                                    `yaml:"runcmd"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &config), module)
		assert.Equal(t, [][]string{{"/bin/bash", "/opt/soak/setup.sh"}}, config.Run, module)
		for _, f := range config.Files {
			if strings.HasSuffix(f.Path, "settings.env") {
				assert.Equal(t, "0600", f.Permissions, "%s %s", module, f.Path)
			}
			if !strings.HasSuffix(f.Path, ".sh") {
				continue
			}
			original := filepath.Base(f.Path)
			if original == "setup.sh" && strings.HasPrefix(module, "runners.") {
				original = strings.TrimSuffix(strings.TrimPrefix(module, "runners."), "s") + ".sh"
			}
			matches, err := filepath.Glob(filepath.Join(source, "modules/*", original))
			require.NoError(t, err)
			require.Len(t, matches, 1, f.Path)
			want, err := os.ReadFile(matches[0])
			require.NoError(t, err)
			assert.Equal(t, string(want), f.Content, "shellcheck must have checked the script that %s runs", module)
		}
		t.Logf("%s: %d bytes", module, len(text))
	}
}

// A stateBucket implements the part of S3 that terraform's backend needs: objects by their path.
type stateBucket struct {
	mu      sync.Mutex
	objects map[string][]byte
}

func (b *stateBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	object, found := b.objects[r.URL.Path]
	switch {
	case r.URL.Query().Has("list-type"):
		fmt.Fprint(w, `<ListBucketResult>`)
		for path := range b.objects {
			fmt.Fprintf(w, `<Contents><Key>%s</Key></Contents>`, strings.SplitN(path, "/", 3)[2])
		}
		fmt.Fprint(w, `</ListBucketResult>`)
	case r.Method == http.MethodPut:
		b.objects[r.URL.Path], _ = io.ReadAll(r.Body)
	case r.Method == http.MethodDelete:
		delete(b.objects, r.URL.Path)
	case !found:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
	case r.Method == http.MethodHead:
		w.Header().Set("Content-Length", fmt.Sprint(len(object)))
	default:
		_, _ = w.Write(object)
	}
}

// TestStateInABucket uncomments the backend in backend.tf, and creates the workspace of a deployment in a fake bucket.
func TestStateInABucket(t *testing.T) {
	t.Parallel()
	dir := initCopy(t)
	bucket := &stateBucket{objects: map[string][]byte{}}
	server := httptest.NewServer(bucket)
	t.Cleanup(server.Close)
	file := filepath.Join(dir, "backend.tf")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	text = regexp.MustCompile(`(?m)^# ([t} ].*|})$`).ReplaceAll(text[strings.Index(string(text), "# terraform {"):], []byte("$1"))
	require.NoError(t, os.WriteFile(file, text, 0o644))
	runTerraform := func(args ...string) {
		run(t, dir, "env", slices.Concat(standIn.env, []string{
			"AWS_ENDPOINT_URL_S3=" + server.URL, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true", "terraform",
		}, args)...)
	}
	runTerraform("init", "-input=false", "-no-color", "-reconfigure", "-backend-config=use_path_style=true",
		"-backend-config=skip_credentials_validation=true", "-backend-config=skip_requesting_account_id=true")
	runTerraform("workspace", "select", "-or-create", "second")
	assert.Contains(t, bucket.objects, "/my-terraform-state/env:/second/sse-soak/terraform.tfstate")
	for path := range bucket.objects {
		assert.NotContains(t, path, ".tflock", "the lock must be released")
	}
}

var update = flag.Bool("update", false, "rewrite docs/results/terraform-plan.txt")

// TestPlan checks that the committed plan equals the current plan of terraform.
func TestPlan(t *testing.T) {
	t.Parallel()
	dir := initCopy(t)
	plan := terraform(t, dir, "plan", "-no-color", "-input=false",
		"-var", `alert_emails=["you@example.com"]`,
		"-var", "stack_dir=tests/files/stack", "-var", "runner_dir=tests/files/runner")
	plan = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`).ReplaceAllString(plan, "2026-01-01T03:15:00") // the end of each schedule
	plan = regexp.MustCompile(`(?s)\n─+\n.*$`).ReplaceAllString(plan, "\n")                                   // the closing instructions
	_, plan, _ = strings.Cut(plan, "Terraform used the selected providers")                                   // the preceding lines list data sources in any order
	text := "# The output of `terraform plan` with the default settings and an address for alerts. `make aws-test` compares it\n" +
		"# with the current plan, without an AWS account: a stand-in for the AWS provider invents the values that AWS returns.\n\n" +
		"Terraform used the selected providers" + plan
	file := filepath.Join(root, "docs/results/terraform-plan.txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	committedPlan, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, string(committedPlan) == text, "docs/results/terraform-plan.txt differs from the plan of terraform; run go test -tags aws ./infra/terraform/check -run Plan -update")
}

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
