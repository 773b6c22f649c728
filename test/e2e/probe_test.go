//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
)

// The description that `soak probe` writes works without changes.
func TestSoakOfProbedDescription(t *testing.T) {
	const payload = `"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}`
	flags := map[string][]string{ // of `soak probe`, by service; the first is the path of a stream
		"nchan": {"/sub/{topic}", "--publish-url", "{base}/pub/{topic}", "--publish-body", "{" + payload},
		"mercure": {
			"/.well-known/mercure?topic={topic}", "--publish-url", "{base}/.well-known/mercure", "--publish-body", "topic={topic}&data={" + payload,
			"--publish-header", "Authorization: Bearer {token}", "--publish-header", "Content-Type: application/x-www-form-urlencoded",
		},
		"pocketbase": {
			"/api/realtime", "--publish-url", "{base}/api/collections/soak/records", "--publish-body", `{"topic":"{topic}",` + payload,
			"--then-url", "{base}/api/realtime",
			"--then-body", `{"clientId":"{client}","subscriptions":["soak/*?options=%7B%22query%22%3A%7B%22filter%22%3A%22topic%3D'{topic}'%22%7D%7D"]}`,
		},
	}
	eachOf(t, []string{"nchan", "mercure", "pocketbase"}, func(t *testing.T, name string) {
		r := startService(t, name, services.Options{})
		file := filepath.Join(t.TempDir(), name+".js")
		args := append([]string{"probe", "--seconds", "20", "--out", file, r.URL + flags[name][0]}, flags[name][1:]...)
		probe := exec.Command(filepath.Join(root, "bin", "soak"), args...)
		probe.Env = append(os.Environ(), r.Env...)
		output, err := probe.CombinedOutput()
		require.NoError(t, err, string(output))
		// Each stream receives a message every 5 s, because some services have no heartbeat, or only one every 30 s.
		v := begin(t, r.Env, "--service", file, "--backend-url", r.URL, "--connections", "20",
			"--seconds", "16", "--topics", "10", "--publish-rate", "2").verdict()
		require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	})
}
