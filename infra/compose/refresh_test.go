package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// runRefresh runs the script with stand-ins for docker and curl that record their arguments. It returns the output of
// the script and the recorded arguments.
func runRefresh(t *testing.T, env, services, viewer string) (output, calls string) {
	t.Helper()
	bin := t.TempDir()
	docker := "#!/bin/sh\ncase \"$2\" in ps) case ' " + services + " ' in *\" $4 \"*) echo id;; esac;; *) echo \"$@\" >>'" + bin + "/calls';; esac\n" +
		"case \"$*\" in *stdin) cat >>'" + bin + "/calls';; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755))
	curl := "#!/bin/sh\nargs=\"$*\"\nwhile [ $# -gt 0 ]; do case $1 in --config) cat \"$2\";; --data) cat \"${2#@}\";; esac; shift; done >>'" + bin + "/calls'\n" +
		"echo \"$args\" | sed 's#/dev/fd/[0-9]*#FILE#g' >>'" + bin + "/calls'\n" + `case "$args" in *lookup*) echo '` + viewer + `';; esac` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "curl"), []byte(curl), 0o755))
	file := filepath.Join(bin, ".env")
	require.NoError(t, os.WriteFile(file, []byte(env), 0o600))
	cmd := exec.CommandContext(t.Context(), "./refresh", file)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(filepath.Join(bin, "calls"))
	if err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	return string(out), string(text)
}

func TestRefreshUpdatesRunningServices(t *testing.T) {
	t.Parallel()
	output, calls := runRefresh(t, "GRAFANA_PASSWORD=new\nPUBLIC_URL=http://soak.example\nHTTPS_PORT=\n", "prometheus grafana alertmanager", "")
	require.Contains(t, calls, "compose kill --signal SIGHUP prometheus\n")
	require.Contains(t, calls, "reset-admin-password --password-from-stdin\nnew\n", "the password must not be an argument, which other users can read")
	require.Contains(t, calls, "amtool alert add --alertmanager.url=http://127.0.0.1:9093 alertname=StackStarted")
	require.Contains(t, output, "http://soak.example/grafana/ (users viewer, admin)")
	require.NotContains(t, calls, "admin/users")
	require.Contains(t, output, "warning: passwords and BACKEND_TOKEN are sent unencrypted")

	output, calls = runRefresh(t, "GRAFANA_PASSWORD=new\nPUBLIC_URL=https://soak.example\nHTTPS_PORT=443\n", "prometheus", "")
	require.Equal(t, "compose kill --signal SIGHUP prometheus\n", calls)
	require.NotContains(t, output, "warning")
}

// refresh creates the user viewer once and updates its password from .env later.
func TestRefreshCreatesAViewer(t *testing.T) {
	t.Parallel()
	env := "GRAFANA_PASSWORD=secret\nGRAFANA_VIEWER_PASSWORD=look\n"
	_, calls := runRefresh(t, env, "grafana", "")
	require.Contains(t, calls, `user = "admin:secret"`+"\n"+`{"name":"viewer","login":"viewer","password":"look"}`+
		"--silent --show-error --fail --request POST --header Content-Type: application/json --config FILE --data @FILE http://127.0.0.1:3000/grafana/api/admin/users\n")
	_, calls = runRefresh(t, env, "grafana", `{"id":7,"login":"viewer"}`)
	require.Contains(t, calls, `{"password":"look"}`)
	require.Contains(t, calls, "--request PUT ")
	require.Contains(t, calls, "/grafana/api/admin/users/7/password\n")
}

// A bind mount of one file keeps the old content after an editor or git replaces the file.
func TestPrometheusMountsItsFolder(t *testing.T) {
	t.Parallel()
	require.Contains(t, read(t, "..", "..", "compose.yaml"), "- ./infra/prometheus:/etc/stack:ro")
	require.Contains(t, read(t, "..", "prometheus", "prometheus.yml"), "- files: [targets.d/*.yml]")
}
