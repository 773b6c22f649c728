//go:build aws

package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
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
