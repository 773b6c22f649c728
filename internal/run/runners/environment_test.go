package runners

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// Not parallel, because it sets the environment. With K6_VUS or K6_ITERATIONS from the environment a runner would
// open fewer streams than planned; with K6_OUT or K6_NO_THRESHOLDS its results would be lost.
func TestRunnerIgnoresLoadInTheEnvironment(t *testing.T) {
	require.Empty(t, IgnoredVariables())
	for _, name := range []string{"K6_VUS", "K6_ITERATIONS", "K6_DURATION", "K6_STAGES", "K6_EXECUTION_SEGMENT", "K6_NO_SETUP", "K6_NO_THRESHOLDS", "K6_OUT", "K6_RPS", "K6_CONFIG", "K6_LINGER"} {
		t.Setenv(name, "1")
	}
	t.Setenv("K6_INSECURE_SKIP_TLS_VERIFY", "true")
	t.Setenv("K6_NO_USAGE_REPORT", "1")
	c := fakeConfig(t, 1, "env")
	g, err := Start(c)
	require.NoError(t, err)
	wait(t, g)
	text, err := os.ReadFile(filepath.Join(c.Dir, "k6-runner-1.log"))
	require.NoError(t, err)
	var variables []string
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "K6_") && name != plan.DocumentVariable {
			variables = append(variables, strings.TrimSpace(line))
		}
	}
	require.ElementsMatch(t, []string{"K6_INSECURE_SKIP_TLS_VERIFY=true", "K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false"}, variables)
	require.Contains(t, string(text), noConfiguration+"\n", "a configuration file in the home of the user may set vus too")
	require.Equal(t, "K6_CONFIG, K6_DURATION, K6_EXECUTION_SEGMENT, K6_ITERATIONS, K6_LINGER, K6_NO_SETUP, K6_NO_THRESHOLDS, K6_OUT, K6_RPS, K6_STAGES, K6_VUS in the environment: "+
		"ignored, because the plan sets them for the runners", IgnoredVariables())
}
