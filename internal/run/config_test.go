package run

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/suite"
)

func TestInvalidSettingsAreRejected(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(c *Config){
		`--pin must be auto or none, got "0-3"`:                                                         func(c *Config) { c.Pin = "0-3" },
		`--progress must be line or full, got "fancy"`:                                                  func(c *Config) { c.Progress = "fancy" },
		`--on must be local or k8s, got "moon"`:                                                         func(c *Config) { c.On = "moon" },
		`AT_ENV must be comma-separated names of variables or all, got "A B"`:                           func(c *Config) { c.AtEnv = "A B" },
		`--at must begin with a time after the start, such as 60s, 1m30s or 2h, got "60"`:               func(c *Config) { c.At = []string{"60: true"} },
		"pass them to `soak merge`":                                                                     func(c *Config) { c.Runner, c.CI = "1/2", ci.Systems{GitHub: true} },
		"BACKEND_URL must have one URL on Kubernetes":                                                   func(c *Config) { c.On, c.Plan.BackendURL = "k8s", "http://a,http://b" },
		"BACKEND_URL is missing: soak starts only its own backend; set BACKEND_URL to the URL of nchan": func(c *Config) { c.Plan.Service, c.Plan.BackendURL = "nchan", "" },
		"did you mean nchan?":                                                                           func(c *Config) { c.Plan.Service, c.Plan.BackendURL = "nchann", "" },
		"PUBLISH_RATE is 2, but TOPICS is 0":                                                            func(c *Config) { c.Plan.Service, c.Plan.PublishRate = "nchan", 2 },
		"need a service that accepts messages, but noop sends its own":                                  func(c *Config) { c.Plan.Topics, c.Plan.PublishRate = 1, 1 },
		"BACKEND_URL must name one service with TOPICS and PUBLISH_RATE": func(c *Config) {
			c.Plan.Service, c.Plan.BackendURL, c.Plan.Topics, c.Plan.PublishRate = "nchan", "http://a,http://b", 1, 1
		},
		"requires --testid":    func(c *Config) { c.Runner, c.Plan.TestID = "1/2", "" },
		"requires BACKEND_URL": func(c *Config) { c.Runner, c.Plan.BackendURL = "1/2", "" },
		"one runner must control all connections": func(c *Config) {
			c.Runner, c.Suite.Runners.OneMachine = "1/2", "one runner must control all connections"
		},
		"NOOP_INTERVAL must be at least 0.001 seconds, got 0": func(c *Config) {
			c.Suite.Plan.BySettings, c.Settings = false, map[string]string{"NOOP_INTERVAL": "0"}
		},
		"NOOP_INTERVAL must be a number of seconds, or a duration": func(c *Config) {
			c.Suite.Plan.BySettings, c.Settings = false, map[string]string{"NOOP_INTERVAL": "x"}
		},
		"requires CLUSTER_URL": func(c *Config) { c.Runner, c.Suite.Target.Kind = "1/2", suite.Cluster },
	} {
		require.ErrorContains(t, settingsError(edit), want)
	}
	for _, address := range []string{"foo", ":99999", ":abc"} {
		want := fmt.Sprintf("must be HOST:PORT or :PORT, got %q", address)
		require.EqualError(t, settingsError(func(c *Config) { c.Live = address }), "--live "+want)
		require.EqualError(t, settingsError(func(c *Config) { c.ControlListen = address }), "--control-listen "+want)
	}
	for _, runner := range []string{"1", "0/2", "3/2", "a/b", "1/", "/2", "1/2/3", "-1/2"} {
		require.ErrorContains(t, settingsError(func(c *Config) { c.Runner = runner }), "must be K/N", runner)
	}
	require.NoError(t, settingsError(func(c *Config) { c.Progress = plan.ProgressFull }))
}

func settingsError(edit func(c *Config)) error {
	c := testConfig("http://h")
	edit(&c)
	return newSession(c).complete(time.Now())
}

func TestPartHasItsShareOfThePlan(t *testing.T) {
	t.Parallel()
	for runner, want := range map[string]struct{ number, runners, connections int }{"2/3": {2, 1, 2}, "1/3": {1, 1, 3}, "": {0, 2, 7}} {
		c := testConfig("http://h")
		c.Runner, c.Plan.Connections = runner, 7
		s := newSession(c)
		require.NoError(t, s.parsePart())
		require.Equal(t, []int{want.number, want.runners, want.connections}, []int{s.runnerNumber, s.localPlan().Runners, s.localPlan().Connections}, runner)
	}
}

func TestStartAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 28, 23, 30, 15, 0, time.FixedZone("", -3600)) // 1 March, 00:30:15 UTC
	for text, want := range map[string]string{
		"00:31":                     "2026-03-01T00:31:00Z",
		"00:30:16":                  "2026-03-01T00:30:16Z",
		"00:30":                     "2026-03-02T00:30:00Z",
		"2026-03-01T02:31:00+01:00": "2026-03-01T01:31:00Z",
	} {
		at, err := parseStart(text, now)
		require.NoError(t, err)
		require.Equal(t, want, at.UTC().Format(time.RFC3339), text)
	}
	at, err := parseStart("", now)
	require.NoError(t, err)
	require.True(t, at.IsZero())
	_, err = parseStart("2026-03-01T00:30:00Z", now)
	require.ErrorContains(t, err, "which was 15s ago")
	for _, text := range []string{"now", "25:00", "10", "2026-03-01"} {
		_, err := parseStart(text, now)
		require.ErrorContains(t, err, "must be HH:MM", text)
	}
}

func testConfig(url string) Config {
	p := plan.Default()
	p.TestID, p.Connections, p.ConnectionsPerVU, p.Seconds, p.NoopInterval, p.BackendURL = "t", 4, 1, 20, 1, url
	return Config{Suite: suite.Default(), Plan: p, Local: plan.DefaultLocal(), Backends: 1, Stdout: &bytes.Buffer{}}
}
