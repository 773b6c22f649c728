package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// refreshed runs the script with a docker that writes down what it is asked, and in which some services run.
func refreshed(t *testing.T, env, services string) (said, asked string) {
	t.Helper()
	bin := t.TempDir()
	docker := "#!/bin/sh\ncase \"$2\" in ps) case ' " + services + " ' in *\" $4 \"*) echo id;; esac;; *) echo \"$@\" >>'" + bin + "/asked';; esac\n" +
		"case \"$*\" in *stdin) cat >>'" + bin + "/asked';; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755))
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
	said, asked := refreshed(t, "GRAFANA_PASSWORD=new\nPUBLIC_URL=http://soak.example\nHTTPS_PORT=\n", "prometheus grafana alertmanager")
	require.Contains(t, asked, "compose kill --signal SIGHUP prometheus\n")
	require.Contains(t, asked, "reset-admin-password --password-from-stdin\nnew\n", "no argument that others see")
	require.Contains(t, asked, "amtool alert add --alertmanager.url=http://127.0.0.1:9093 alertname=StackStarted")
	require.Contains(t, said, "http://soak.example/grafana/ (user admin)")
	require.Contains(t, said, "warning: passwords and BACKEND_TOKEN cross the network in clear")

	said, asked = refreshed(t, "GRAFANA_PASSWORD=new\nPUBLIC_URL=https://soak.example\nHTTPS_PORT=443\n", "prometheus")
	require.Equal(t, "compose kill --signal SIGHUP prometheus\n", asked)
	require.NotContains(t, said, "warning")
}

// A bind mount of one file shows the old content after an editor or git replaced the file.
func TestPrometheusSeesChangedFiles(t *testing.T) {
	t.Parallel()
	require.Contains(t, read(t, "..", "..", "compose.yaml"), "- ./infra/prometheus:/etc/stack:ro")
	require.Contains(t, read(t, "..", "prometheus", "prometheus.yml"), "- files: [targets.d/*.yml]")
}
