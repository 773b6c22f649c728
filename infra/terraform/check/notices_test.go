//go:build aws

package check

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkNotices checks that a timer queries the notices, and that node_exporter exports the end time and the boot id of
// the host.
func (m *machine) checkNotices() {
	m.t.Helper()
	assert.Equal(m.t, "active", m.sh("systemctl is-active soak-notices.timer"))
	const file = "/var/lib/prometheus/node-exporter/soak.prom"
	info := fmt.Sprintf(`^soak_host_end_timestamp_seconds [0-9.e+]+\nsoak_host_info\{boot_id="%s"\} 1$`, m.sh("cat /proc/sys/kernel/random/boot_id"))
	assert.Regexp(m.t, info, m.sh("cat "+file))
	assert.Regexp(m.t, info, m.sh("curl -sS http://127.0.0.1:9100/metrics | grep ^soak_host"), "node_exporter must export the file")
}

// The responses have the format of the AWS metadata service (docs.aws.amazon.com: "View scheduled events for your
// instances" and "Spot Instance interruption notices").
func TestNoticesFromMetadataService(t *testing.T) {
	t.Parallel()
	needs(t, "curl", "apt-get install curl")
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	info := fmt.Sprintf("soak_host_info{boot_id=%q} 1\n", strings.TrimSpace(string(boot)))
	event := func(code, notBefore, state string) string {
		return fmt.Sprintf(`{"NotBefore": %q, "Code": %q, "Description": "scheduled \"reboot\"", "EventId": "instance-event-0d59937288b749b32", "NotAfter": "21 Jan 2019 09:17:23 GMT", "State": %q}`, notBefore, code, state)
	}
	for name, c := range map[string]struct {
		pages map[string]string // responses of the metadata service by path; other paths are 404
		want  string
	}{
		"nothing":       {nil, ""},
		"an empty list": {map[string]string{"events/maintenance/scheduled": "[]"}, ""},
		"a reboot": {
			map[string]string{"events/maintenance/scheduled": "[" + event("system-reboot", "21 Jan 2019 09:00:43 GMT", "active") + "]"},
			`soak_host_notice_timestamp_seconds{what="system-reboot"} 1548061243` + "\n",
		},
		"two active events of one kind, and two past ones": {
			map[string]string{"events/maintenance/scheduled": "[" + strings.Join([]string{
				event("system-reboot", "22 Jan 2019 09:00:43 GMT", "active"), event("system-reboot", "21 Jan 2019 09:00:43 GMT", "active"),
				event("instance-stop", "21 Jan 2019 09:00:43 GMT", "completed"), event("instance-retirement", "21 Jan 2019 09:00:43 GMT", "canceled"),
			}, ",") + "]"},
			`soak_host_notice_timestamp_seconds{what="system-reboot"} 1548061243` + "\n",
		},
		"an interruption of a spot instance": {
			map[string]string{"events/maintenance/scheduled": "[]", "spot/instance-action": `{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`},
			`soak_host_notice_timestamp_seconds{what="spot terminate"} 1505722920` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "not", "there", "yet")
			output, err := notices(t, c.pages, dir)
			require.NoError(t, err, output)
			got, err := os.ReadFile(filepath.Join(dir, "soak.prom"))
			require.NoError(t, err)
			assert.Equal(t, info+c.want, string(got))
		})
	}

	dir := t.TempDir()
	_, err = notices(t, nil, dir)
	require.NoError(t, err)
	_, err = notices(t, map[string]string{"events/maintenance/scheduled": "<html>"}, dir)
	require.Error(t, err, "notices.sh must fail after an invalid response")
	got, err := os.ReadFile(filepath.Join(dir, "soak.prom"))
	require.NoError(t, err)
	assert.Equal(t, info, string(got), "the previous file must remain")
}

// notices runs notices.sh with a fake metadata service that serves the pages. The script writes to dir.
func notices(t *testing.T, pages map[string]string, dir string) (string, error) {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, found := pages[strings.TrimPrefix(r.URL.Path, "/latest/meta-data/")]
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			fmt.Fprint(w, "token")
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "token":
			http.Error(w, "no token", http.StatusUnauthorized)
		case !found:
			http.NotFound(w, r)
		default:
			fmt.Fprint(w, page)
		}
	}))
	t.Cleanup(service.Close)
	bin := t.TempDir()
	curl := "#!/bin/bash\nexec " + lookPath(t, "curl") + ` "${@//http:\/\/169.254.169.254/` + strings.ReplaceAll(service.URL, "/", `\/`) + `}"` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "curl"), []byte(curl), 0o755))
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(source, "modules/host/notices.sh"), dir)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err)
	return path
}
