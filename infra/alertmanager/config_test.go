package alertmanager

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

const arn = "arn:aws:sns:eu-central-1:123456789012:soak"

func TestAlertmanagerAcceptsTheConfiguration(t *testing.T) {
	t.Parallel()
	amtool, err := exec.LookPath("amtool")
	if err != nil {
		untested.SkipMissing(t, "amtool is not installed: apt-get install prometheus-alertmanager")
	}
	for _, to := range [][2]string{{"http://127.0.0.1:8080/alerts", ""}, {"", arn}, {"https://example.com/a?b=c", arn}, {"https://hooks.slack.com/services/T/B/x", ""}} {
		text, err := Config(to[0], to[1])
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "alertmanager.yml")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		out, err := exec.Command(amtool, "check-config", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "1 receivers")
		out, err = exec.Command(amtool, "config", "routes", "test", "--config.file="+file, "alertname=RunnerSilent").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "people\n")
	}
}

// Chat services reject the JSON of a webhook. Debian's amtool does not support the receiver of Teams yet.
func TestReceiversOfChats(t *testing.T) {
	t.Parallel()
	for webhook, receiver := range map[string]string{
		"https://hooks.slack.com/services/T/B/x":                                `"slack_configs": [`,
		"https://prod-1.westeurope.logic.azure.com/workflows/1":                 `"msteamsv2_configs": [`,
		"https://1.environment.api.powerplatform.com/powerautomate/workflows/1": `"msteamsv2_configs": [`,
		"https://chat.example.com/hooks/1":                                      `"webhook_configs": [`,
	} {
		text, err := Config(webhook, "")
		require.NoError(t, err)
		require.Contains(t, string(text), receiver, webhook)
		require.Equal(t, 1, strings.Count(string(text), "_configs"))
	}
}

func TestConfigRejectsInvalidReceivers(t *testing.T) {
	t.Parallel()
	for want, to := range map[string][2]string{
		"the profile alerts, but no receiver is set":  {},
		"ALERT_WEBHOOK_URL must be the http or https": {"example.com/alerts", ""},
		"ALERT_SNS_TOPIC must be the ARN":             {"", "soak"},
	} {
		_, err := Config(to[0], to[1])
		require.ErrorContains(t, err, want)
	}
}
