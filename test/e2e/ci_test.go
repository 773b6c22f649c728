//go:build e2e

package e2e

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// The step soak of action.yml produces the correct annotations, outputs, JUnit file and exit code, both for a run that
// passes and for a run that loses a noop.
func TestGitHubAction(t *testing.T) {
	t.Parallel()
	var action struct {
		Runs struct {
			Steps []struct{ ID, Run string }
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "action.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &action))
	script := ""
	for _, s := range action.Runs.Steps {
		if s.ID == "soak" {
			script = s.Run
		}
	}
	soak, err := filepath.Abs(filepath.Join(root, "bin", "soak"))
	require.NoError(t, err)
	for _, c := range []struct {
		name, fault, verdict, annotation string
		code                             int
	}{
		{"a run that passes", "", "pass", "::notice title=Soak pass::10 streams open to the end", 0},
		{"a run that loses a noop", "drop:id=ci-3,noop=2", "fail", "::error title=Soak fail%3A noops missed::ci-3 missed noop 2", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			in := func(name string) string { return filepath.Join(folder, name) }
			content := func(name string) string {
				b, err := os.ReadFile(in(name))
				require.NoError(t, err)
				return string(b)
			}
			cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
			cmd.Dir = folder
			cmd.Env = append(os.Environ(), "SOAK="+soak, "COMMAND=run", "BACKEND_URL=", "OUT=results", "JUNIT=soak.xml", "BACKEND_FAULT="+c.fault,
				"ARGS=--connections=10\n--seconds=10\n--noop-interval=1\n--prefix=ci-\n--testid=in-ci", "GITHUB_STEP_SUMMARY="+in("summary"), "GITHUB_OUTPUT="+in("output"))
			output, _ := cmd.CombinedOutput()
			require.Equal(t, c.code, cmd.ProcessState.ExitCode(), string(output))
			first, suffix, _ := strings.Cut(string(output), "\n")
			token, stopped := strings.CutPrefix(first, "::stop-commands::")
			require.True(t, stopped, first)
			_, annotations, resumed := strings.Cut(suffix, "\n::"+token+"::\n")
			require.True(t, resumed, suffix)
			require.True(t, strings.HasPrefix(annotations, c.annotation), annotations)

			require.Equal(t, "verdict="+c.verdict+"\ntestid=in-ci\nreport="+filepath.Join("results", "in-ci", "report.html")+"\n", content("output"))
			require.FileExists(t, in(filepath.Join("results", "in-ci", "report.html")))
			require.FileExists(t, in(filepath.Join("results", "index.html")))
			require.Contains(t, content("summary"), strings.ToUpper(c.verdict)+": ")
			var junit struct {
				Suites []struct {
					Failures int `xml:"failures,attr"`
					Cases    []struct {
						Name string `xml:"name,attr"`
					} `xml:"testcase"`
				} `xml:"testsuite"`
			}
			require.NoError(t, xml.Unmarshal([]byte(content("soak.xml")), &junit))
			require.Equal(t, c.code, min(junit.Suites[0].Failures, 1))
			require.Greater(t, len(junit.Suites[0].Cases), 5)
		})
	}
}
