package runners

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Not parallel, as it sets the environment.
func TestPrometheusSettingsOfARemoteRunner(t *testing.T) {
	t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", "")
	settings, err := RemoteWriteSettings()
	require.NoError(t, err)
	require.Nil(t, settings, "by default there is no Prometheus")

	t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", "http://u:p%2Fw@h:1/api/v1/write")
	t.Setenv("K6_PROMETHEUS_RW_HTTP_HEADERS", "X-Scope-OrgID:a")
	settings, err = RemoteWriteSettings()
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"K6_PROMETHEUS_RW_SERVER_URL": "http://h:1/api/v1/write", "K6_PROMETHEUS_RW_USERNAME": "u", "K6_PROMETHEUS_RW_PASSWORD": "p/w",
		"K6_PROMETHEUS_RW_HTTP_HEADERS": "X-Scope-OrgID:a", "K6_PROMETHEUS_RW_TREND_STATS": "p(50),p(99),max",
	}, settings, "k6 prints the URL, so it has no password")

	t.Setenv("K6_PROMETHEUS_RW_USERNAME", "other")
	t.Setenv("K6_PROMETHEUS_RW_PASSWORD", "hush")
	t.Setenv("K6_PROMETHEUS_RW_TREND_STATS", "avg")
	settings, err = RemoteWriteSettings()
	require.NoError(t, err)
	require.Equal(t, []string{"other", "hush", "avg"}, []string{settings["K6_PROMETHEUS_RW_USERNAME"], settings["K6_PROMETHEUS_RW_PASSWORD"], settings["K6_PROMETHEUS_RW_TREND_STATS"]})

	t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", "h:pass@word")
	_, err = RemoteWriteSettings()
	require.EqualError(t, err, "K6_PROMETHEUS_RW_SERVER_URL must begin with http:// or https:// and name a host")

	t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", "https://h/api/v1/write")
	t.Setenv("K6_PROMETHEUS_RW_CLIENT_CERTIFICATE", "/home/a/cert.pem")
	_, err = RemoteWriteSettings()
	require.ErrorContains(t, err, "K6_PROMETHEUS_RW_CLIENT_CERTIFICATE is a file of this machine")
}

// As k6 v2.2.0 writes them.
const failedWrites = `time="2026-11-22T09:00:00Z" level=warning msg="a warning" error=x output="Prometheus remote write"
time="2026-11-22T09:00:00Z" level=error msg="Failed to send the time series data to the endpoint" error="got status code: 401 instead expected a 2xx successful status code" output="Prometheus remote write"
time="2026-11-22T09:00:05Z" level=error msg="Failed to send the time series data to the endpoint" error="HTTP POST request failed: Post \"http://h:1/w\": connection refused" output="Prometheus remote write"
`

func TestFailedWritesDoNotFailTheRun(t *testing.T) {
	t.Parallel()
	count, last := FailedWrites(strings.NewReader(failedWrites))
	require.Equal(t, 2, count)
	require.Equal(t, `HTTP POST request failed: Post "http://h:1/w": connection refused`, last)
	_, found := LastError(strings.NewReader(failedWrites))
	require.False(t, found)

	const other = `time="2026-11-22T09:00:00Z" level=error msg="the shard was not delivered"` + "\n"
	count, _ = FailedWrites(strings.NewReader(other))
	require.Zero(t, count)
	reason, found := LastError(strings.NewReader(other + failedWrites))
	require.True(t, found)
	require.Equal(t, `"the shard was not delivered"`, reason)
}
