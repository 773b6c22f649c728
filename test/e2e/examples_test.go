//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const finiteExample = "09-finite-stream.js"

// example runs an example with the command in its header, and returns the exit code, the checks and the output of k6.
// fault is a fault of the backend or, for the finite stream, of the model; "" is no fault.
func example(t *testing.T, script, fault string) (code int, checks struct{ Passes, Fails int }, output string) {
	t.Helper()
	summary, url, prompt := filepath.Join(t.TempDir(), "summary.json"), "", ""
	if filepath.Base(script) == finiteExample {
		_, url = startModel(t)
		prompt = "soak id=example fault=" + cmp.Or(fault, "none")
	} else {
		url = backend(t, "NOOP_INTERVAL=1s", "BACKEND_FAULT="+fault)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "k6"), "run", "--env", "BACKEND_URL="+url, "--env", "PROMPT="+prompt,
		"--summary-export", summary, script)
	out, _ := cmd.CombinedOutput()
	text, err := os.ReadFile(summary)
	require.NoError(t, err, "%s", out)
	var s struct {
		Metrics struct{ Checks struct{ Passes, Fails int } }
	}
	require.NoError(t, json.Unmarshal(text, &s))
	return cmd.ProcessState.ExitCode(), s.Metrics.Checks, string(out)
}

func TestExamplesPass(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(root, "examples", "*.js"))
	require.NoError(t, err)
	require.Len(t, scripts, 8)
	faults := map[string]string{"06-reconnect.js": "reset:noop=2"}
	for _, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) {
			t.Parallel()
			code, checks, output := example(t, script, faults[filepath.Base(script)])
			require.Zero(t, code, output)
			require.Zero(t, checks.Fails, output)
			require.Positive(t, checks.Passes, output)
		})
	}
}

// The checks and thresholds of an example detect faults of the service.
func TestExamplesFindFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault string
		code  int
	}{
		"01-hold-one-stream.js": {"stall:noop=1", 0},
		"03-count-noops.js":     {"drop:noop=2", 0},
		"05-thresholds.js":      {"reset:noop=2", 99},
		"06-reconnect.js":       {"drop:noop=2", 0},
		finiteExample:           {"truncate@10", 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, checks, output := example(t, filepath.Join(root, "examples", name), c.fault)
			require.Equal(t, c.code, code, output)
			require.Positive(t, checks.Fails, output)
		})
	}
}

func TestTwoLaptopsExample(t *testing.T) {
	t.Parallel()
	shards := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "examples", "07-two-laptops.sh"), shards)
	cmd.Env = append(os.Environ(), "BACKEND_URL="+backend(t, "NOOP_INTERVAL=1s"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	v := readVerdict(t, results.Dir(shards))
	require.Equal(t, verdict.Pass, v.Verdict, "%s", out)
	require.Equal(t, 10, v.Connections.Completed)
}

// TestJavaScriptLibrary runs the tests of load-tests/lib. Each test case is a check of k6.
func TestJavaScriptLibrary(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(root, "load-tests", "test", "*.test.js"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(scripts), 3)
	url := backend(t, "NOOP_INTERVAL=0.5s")
	for _, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) {
			t.Parallel()
			out, err := testScript(script, url)
			require.NoError(t, err, out)
			require.NotContains(t, out, "level=error")
			require.Contains(t, out, "✓ 'rate==1' rate=100.00%", "at least one case must run")
		})
	}
}

func TestJavaScriptTestsFail(t *testing.T) {
	t.Parallel()
	out, err := testScript(filepath.Join("testdata", "failing.test.js"), "")
	require.ErrorContains(t, err, "exit status 99", out)
	require.Contains(t, out, "one is two: Error: the value must be 2, got 1")
}

func testScript(script, url string) (string, error) {
	out, err := exec.Command(filepath.Join(root, "bin", "k6"), "run", "--quiet", "--env", "BACKEND_URL="+url, script).CombinedOutput()
	return string(out), err
}

// The step soak of action.yml produces the correct annotations, outputs, JUnit file and exit code. One run passes, and
// another run loses a noop.
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
