package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

// Users choose the password and write it to .env in the syntax of Compose.
func TestAddressEscapesPasswords(t *testing.T) {
	t.Parallel()
	if err := exec.Command("docker", "compose", "version").Run(); err != nil {
		untested.SkipMissing(t, "Docker has no plugin compose")
	}
	for line, password := range map[string]string{
		"0a1b2c":                "0a1b2c",
		`a&b/c|d\1@e:f?g%20#h+`: `a&b/c|d\1@e:f?g%20#h+`,
		`'$a b "c" $${d}'`:      `$a b "c" $${d}`,
		`"it's $$5, \"x\" "`:    `it's $5, "x" `,
		`plain # a comment`:     "plain",
		`'a$$PATH$b'`:           `a$$PATH$b`,
	} {
		file := filepath.Join(t.TempDir(), ".env")
		require.NoError(t, os.WriteFile(file, []byte("BACKEND_TOKEN=t\nGRAFANA_PASSWORD=g\nPUBLIC_URL=https://soak.example:8443\nPROMETHEUS_PASSWORD="+line+"\n"), 0o600))
		text, err := address(t.Context(), "--env-file", file, "--file", "../../../compose.yaml")
		require.NoError(t, err, line)
		u, err := url.Parse(text)
		require.NoError(t, err, line)
		got, _ := u.User.Password()
		assert.Equal(t, password, got, line)
		assert.Equal(t, "https://prometheus@soak.example:8443/prometheus/", (&url.URL{Scheme: u.Scheme, User: url.User(u.User.Username()), Host: u.Host, Path: u.Path}).String())
	}
	_, err := address(t.Context(), "--env-file", "/none", "--file", "../../../compose.yaml")
	require.ErrorContains(t, err, "docker compose config: ")
	require.ErrorContains(t, err, "/none")
}
