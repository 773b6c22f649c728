package secret

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandReplacesSecrets(t *testing.T) {
	t.Parallel()
	got := Command([]string{
		"env", "PUBLISH_TOKEN=hunter2", "CONNECTIONS=5", "bin/soak", "run", "--api-key", "hunter2", "--token=hunter2",
		"--backend-url", "https://me:hunter2@host/?token=hunter2",
		"--at", `30m reload: curl -H "Authorization: Bearer hunter2hunter2" http://host`, "--topics", "12", "--sig", "hunter2", "--token", "--live",
	})
	require.Equal(t, []string{
		"env", "PUBLISH_TOKEN=[redacted]", "CONNECTIONS=5", "bin/soak", "run", "--api-key", "[redacted]", "--token=[redacted]",
		"--backend-url", "https://me:[redacted]@host/?token=[redacted]",
		"--at", `30m reload: curl -H "Authorization: [redacted]" http://host`, "--topics", "12", "--sig", "[redacted]", "--token", "--live",
	}, got)
}
