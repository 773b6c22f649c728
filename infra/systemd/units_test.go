// Package systemd tests the units with which systemd runs the runners of a host.
package systemd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

func TestUnitsAreValid(t *testing.T) {
	t.Parallel()
	analyze := lookPath(t, "systemd-analyze", "apt-get install systemd")
	dir := t.TempDir()
	for name, instance := range map[string]string{"soak-runner@.service": "soak-runner@2.service", "soak-spot.service": "soak-spot.service"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		unit := filepath.Join(dir, instance)
		require.NoError(t, os.WriteFile(unit, text, 0o600))
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), dir, "systemd must not ignore a line of the unit")
	}
}

func TestSpotNoticeStopsTheRunners(t *testing.T) {
	t.Parallel()
	curl := lookPath(t, "curl", "apt-get install curl")
	var requests atomic.Int32
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			fmt.Fprint(w, "token")
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "token":
			http.Error(w, "no token", http.StatusUnauthorized)
		case r.URL.Path != "/latest/meta-data/spot/instance-action" || requests.Add(1) < 3:
			http.NotFound(w, r)
		default:
			fmt.Fprint(w, `{"action": "terminate", "time": "2026-09-18T08:22:00Z"}`)
		}
	}))
	defer metadata.Close()
	bin := t.TempDir()
	for name, script := range map[string]string{
		"curl":      "for a; do shift; set -- \"$@\" \"$(echo \"$a\" | sed 's#http://169.254.169.254#" + metadata.URL + "#')\"; done; exec " + curl + ` "$@"`,
		"systemctl": `echo "systemctl $@"`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700)) // #nosec G306 -- a program
	}
	cmd := exec.CommandContext(t.Context(), "sh", "soak-spot.sh")
	cmd.Env = append(os.Environ(), "EVERY=0.01", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.True(t, strings.HasSuffix(string(out), "systemctl stop soak-runner@*\n"), "%s", out)
	require.EqualValues(t, 3, requests.Load())
}

// lookPath returns the path of a tool. It skips the test if the tool is not installed.
func lookPath(t *testing.T, tool, remedy string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		untested.Skip(t, tool+" is not installed: "+remedy)
	}
	return path
}
