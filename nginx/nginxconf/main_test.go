package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func environment(changes map[string]string) func(string) string {
	env := map[string]string{
		"CONNECTIONS": "1200", "BACKEND_TOKEN": "t0ken", "PROMETHEUS_PASSWORD": "secret", "HTTP_PORT": "80", "OPEN_DISCONNECT": "on",
	}
	return func(name string) string {
		if v, ok := changes[name]; ok {
			return v
		}
		return env[name]
	}
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	require.NoError(t, err)
	return string(b)
}

func TestOneBackend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, write(folders{dir, dir, t.TempDir()}, environment(nil)))
	conf := read(t, dir, "nginx.conf")
	require.Contains(t, conf, "listen 80 backlog=8192;")
	require.Contains(t, conf, "proxy_read_timeout 3600s;")
	require.NotContains(t, conf, "hash $arg_id")
	require.NotContains(t, conf, "ssl_certificate")
	require.Regexp(t, regexp.MustCompile(`^prometheus:\{SSHA\}[A-Za-z0-9+/=]{38,}\n$`), read(t, dir, "htpasswd"))
	require.JSONEq(t, `[{"targets":["127.0.0.1:9145"],"labels":{"__metrics_path__":"/backend-1/metrics","instance":"backend-1"}}]`,
		read(t, dir, "backend.json"))
	info, err := os.Stat(filepath.Join(dir, "nginx.conf"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "nginx.conf contains the token")
}

func TestClusterAndTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, write(folders{dir, dir, t.TempDir()}, environment(map[string]string{"COMPOSE_PROFILES": "x,cluster", "HTTPS_PORT": "443"})))
	conf := read(t, dir, "nginx.conf")
	require.Contains(t, conf, "hash $arg_id consistent;")
	require.Contains(t, conf, `server "unix:/run/backend/backend-3.sock" max_fails=0;`)
	require.Contains(t, conf, "listen 443 ssl")
	require.Contains(t, read(t, dir, "backend.json"), `"/backend-3/metrics"`)
}

func TestAlertReceivers(t *testing.T) {
	t.Parallel()
	to := folders{t.TempDir(), t.TempDir(), t.TempDir()}
	require.NoError(t, write(to, environment(nil)))
	require.Equal(t, "[]", read(t, to.targets, "alertmanager.yml"), "there is no Alertmanager without the profile")
	require.NoError(t, write(to, environment(map[string]string{"COMPOSE_PROFILES": "cluster,alerts", "ALERT_WEBHOOK_URL": "http://10.0.0.1/hook"})))
	require.JSONEq(t, `[{"targets":["127.0.0.1:9093"],"labels":{"instance":"stack"}}]`, read(t, to.targets, "alertmanager.yml"))
	require.Contains(t, read(t, to.alerts, "alertmanager.yml"), `"url": "http://10.0.0.1/hook"`)
}

func TestWriteRejectsInvalidSettings(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]map[string]string{
		`CONNECTIONS must be a positive whole number, got "many"`: {"CONNECTIONS": "many"},
		"BACKEND_TOKEN must consist of":                           {"BACKEND_TOKEN": `x" 1; } evil`},
		"PROMETHEUS_PASSWORD must not be empty":                   {"PROMETHEUS_PASSWORD": ""},
		`HTTP_PORT must be the number of a port, got ""`:          {"HTTP_PORT": ""},
		`HTTPS_PORT must be the number of a port, got "443;"`:     {"HTTPS_PORT": "443;"},
		`OPEN_DISCONNECT must be on or off, got "maybe"`:          {"OPEN_DISCONNECT": "maybe"},
		"the profile alerts, but no receiver is set":              {"COMPOSE_PROFILES": "alerts"},
	} {
		dir := t.TempDir()
		require.ErrorContains(t, write(folders{dir, dir, t.TempDir()}, environment(change)), want)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, files)
	}
}
