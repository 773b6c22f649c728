package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// runRefresh runs the script with a docker that writes down what it is asked, and in which some services run.
func runRefresh(t *testing.T, env, services, viewer string) (said, asked string) {
	t.Helper()
	bin := t.TempDir()
	docker := "#!/bin/sh\ncase \"$2\" in ps) case ' " + services + " ' in *\" $4 \"*) echo id;; esac;; *) echo \"$@\" >>'" + bin + "/asked';; esac\n" +
		"case \"$*\" in *stdin) cat >>'" + bin + "/asked';; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755))
	curl := "#!/bin/sh\nargs=\"$*\"\nwhile [ $# -gt 0 ]; do case $1 in --config) cat \"$2\";; --data) cat \"${2#@}\";; esac; shift; done >>'" + bin + "/asked'\n" +
		"echo \"$args\" | sed 's#/dev/fd/[0-9]*#FILE#g' >>'" + bin + "/asked'\n" + `case "$args" in *lookup*) echo '` + viewer + `';; esac` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "curl"), []byte(curl), 0o755))
	file := filepath.Join(bin, ".env")
	require.NoError(t, os.WriteFile(file, []byte(env), 0o600))
	cmd := exec.CommandContext(t.Context(), "./refresh", file)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(filepath.Join(bin, "asked"))
	if err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	return string(out), string(text)
}

func TestUpRefreshesWhatKeptRunning(t *testing.T) {
	t.Parallel()
	said, asked := runRefresh(t, "GRAFANA_PASSWORD=new\nPUBLIC_URL=http://soak.example\nHTTPS_PORT=\n", "prometheus grafana alertmanager", "")
	require.Contains(t, asked, "compose kill --signal SIGHUP prometheus\n")
	require.Contains(t, asked, "reset-admin-password --password-from-stdin\nnew\n", "no argument that others see")
	require.Contains(t, asked, "amtool alert add --alertmanager.url=http://127.0.0.1:9093 alertname=StackStarted")
	require.Contains(t, said, "http://soak.example/grafana/ (users viewer, admin)")
	require.NotContains(t, asked, "admin/users")
	require.Contains(t, said, "warning: passwords and BACKEND_TOKEN cross the network in clear")

	said, asked = runRefresh(t, "GRAFANA_PASSWORD=new\nPUBLIC_URL=https://soak.example\nHTTPS_PORT=443\n", "prometheus", "")
	require.Equal(t, "compose kill --signal SIGHUP prometheus\n", asked)
	require.NotContains(t, said, "warning")
}

// The user viewer is made once; later its password follows .env.
func TestUpMakesAViewer(t *testing.T) {
	t.Parallel()
	env := "GRAFANA_PASSWORD=secret\nGRAFANA_VIEWER_PASSWORD=look\n"
	_, asked := runRefresh(t, env, "grafana", "")
	require.Contains(t, asked, `user = "admin:secret"`+"\n"+`{"name":"viewer","login":"viewer","password":"look"}`+
		"--silent --show-error --fail --request POST --header Content-Type: application/json --config FILE --data @FILE http://127.0.0.1:3000/grafana/api/admin/users\n")
	_, asked = runRefresh(t, env, "grafana", `{"id":7,"login":"viewer"}`)
	require.Contains(t, asked, `{"password":"look"}`)
	require.Contains(t, asked, "--request PUT ")
	require.Contains(t, asked, "/grafana/api/admin/users/7/password\n")
}

// A bind mount of one file shows the old content after an editor or git replaced the file.
func TestPrometheusSeesChangedFiles(t *testing.T) {
	t.Parallel()
	require.Contains(t, read(t, "..", "..", "compose.yaml"), "- ./infra/prometheus:/etc/stack:ro")
	require.Contains(t, read(t, "..", "prometheus", "prometheus.yml"), "- files: [targets.d/*.yml]")
}
