//go:build aws

package check

import (
	"archive/tar"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	region     = "us-east-1" // the default
	apiAddr    = "169.254.170.1"
	apiHost    = "ssm." + region + ".amazonaws.com"
	bucketHost = "sse-soak-mock.s3." + region + ".amazonaws.com"
)

// A machine is a started host: a container with systemd, cloud-init and its own Docker.
type machine struct {
	t    *testing.T
	name string
	ip   string
}

func (s *site) boot(t *testing.T, c *cloud, userData string) *machine {
	t.Helper()
	m := &machine{t: t, name: fmt.Sprintf("soak-aws-test-%d", time.Now().UnixNano())}
	groups := []string{"--cgroupns", "private"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil { // version 1
		groups = []string{"--cgroupns", "host", "-v", "/sys/fs/cgroup:/sys/fs/cgroup:rw"}
	}
	args := append([]string{"create", "--name", m.name, "--hostname", "stack", "--network", s.network,
		"--cap-add", "SYS_ADMIN", "--cap-add", "NET_ADMIN", "--cap-add", "SYS_PTRACE", "--cap-add", "DAC_READ_SEARCH",
		"--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined", "--security-opt", "systempaths=unconfined",
		"--tmpfs", "/run", "--tmpfs", "/run/lock", "--add-host", apiHost + ":" + apiAddr, "--add-host", bucketHost + ":" + apiAddr}, groups...)
	run(t, ".", "docker", append(args, s.image)...)
	t.Cleanup(m.remove)
	m.writeFiles(map[string][]byte{
		"etc/ssl/certs/ca-certificates.crt":          s.authorities,
		"var/lib/cloud/seed/nocloud/user-data":       []byte(userData),
		"var/lib/cloud/seed/nocloud/meta-data":       []byte("instance-id: " + instanceID + "\n"),
		"etc/systemd/system/cloud-addresses.service": addressUnit(c),
	})
	m.start()
	return m
}

// addressUnit returns a systemd unit that redirects the addresses of AWS to the simulated cloud.
func addressUnit(c *cloud) []byte {
	var b strings.Builder
	b.WriteString("[Unit]\nBefore=cloud-final.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\n")
	for from, to := range map[string]net.Addr{"169.254.169.254 --dport 80": c.metadata.Listener.Addr(), apiAddr + " --dport 443": c.api.Listener.Addr()} {
		address, port, _ := strings.Cut(from, " ")
		fmt.Fprintf(&b, "ExecStart=/usr/sbin/iptables -t nat -A OUTPUT -d %s -p tcp %s -j DNAT --to-destination %s\n", address, port, to)
	}
	b.WriteString("[Install]\nWantedBy=multi-user.target\n")
	return []byte(b.String())
}

// writeFiles writes files to the disk of the machine and enables each systemd service among them.
func (m *machine) writeFiles(files map[string][]byte) {
	m.t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, content := range files {
		require.NoError(m.t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Now()}))
		_, err := w.Write(content)
		require.NoError(m.t, err)
		if strings.HasSuffix(name, ".service") {
			link := "etc/systemd/system/multi-user.target.wants/" + filepath.Base(name)
			require.NoError(m.t, w.WriteHeader(&tar.Header{Name: link, Linkname: "/" + name, Typeflag: tar.TypeSymlink, Mode: 0o777}))
		}
	}
	require.NoError(m.t, w.Close())
	cmd := exec.Command("docker", "cp", "-", m.name+":/")
	cmd.Stdin = &archive
	output, err := cmd.CombinedOutput()
	require.NoError(m.t, err, "%s", output)
}

// start starts the machine. After a stop, this is a reboot.
func (m *machine) start() {
	m.t.Helper()
	run(m.t, ".", "docker", "start", m.name)
	m.ip = strings.TrimSpace(run(m.t, ".", "docker", "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", m.name))
}

func (m *machine) sh(command string) string {
	m.t.Helper()
	return strings.TrimSpace(run(m.t, ".", "docker", "exec", m.name, "sh", "-c", command))
}

// log returns the end of the output of the setup, and the failed units of systemd.
func (m *machine) log() string {
	output, err := exec.Command("docker", "exec", m.name, "sh", "-c", "tail -n 60 /var/log/cloud-init-output.log; systemctl --failed --no-pager").CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return string(output)
}

// remove removes the machine. It first shuts the machine down, as AWS would, so that the containers on it stop
// gracefully.
func (m *machine) remove() {
	if m.t.Failed() {
		m.t.Log(m.log())
	}
	_ = exec.Command("docker", "stop", "-t", "60", m.name).Run()
	run(m.t, ".", "docker", "rm", "-fv", m.name)
}

// state returns Docker's name for the state, such as running or exited.
func (m *machine) state() string {
	return strings.TrimSpace(run(m.t, ".", "docker", "inspect", "-f", "{{.State.Status}}", m.name))
}

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

// function returns the text of a function in a host's script.
func function(t *testing.T, script, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, "modules", script))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?ms)^` + name + `\(\) \{\n.*?^\}\n`).Find(text)
	require.NotEmpty(t, found, "%s has no function %s", script, name)
	return string(found)
}

// bash runs a script with the options and the trap of the hosts' scripts, and with a sleep that returns at once.
func bash(t *testing.T, script string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "sleep"), []byte("#!/bin/sh\n"), 0o755))
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -Eeuo pipefail\nwhere= command=\n"+
		"trap 'echo \"code $? at $where: $command\"' EXIT\n"+script)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func TestCommandsAreRetried(t *testing.T) {
	t.Parallel()
	retry := function(t, "host/begin.sh", "retry")
	out, err := bash(t, retry+"tries=0\nflaky() { tries=$((tries + 1)); ((tries > 3)); }\nretry flaky now\necho done")
	require.NoError(t, err, out)
	assert.Regexp(t, `(?s)SOAK-SETUP: flaky now failed; next attempt in 5 s.*attempt in 15 s.*attempt in 30 s\ndone\n`, out)

	out, err = bash(t, retry+"retry false always\necho done")
	require.Error(t, err)
	assert.Contains(t, out, "false always", "the output must contain the failed command")
	assert.NotContains(t, out, "done")
}

func TestFetchObjectsChecksSHA256(t *testing.T) {
	t.Parallel()
	objects := filepath.Join(t.TempDir(), "objects")
	fetch := strings.ReplaceAll(function(t, "host/aws.sh", "fetch_objects"), "/opt/soak/objects", objects)
	stub := "BUCKET=b REGION=r\nsigned() { echo hello >\"$4\"; echo \"$2\"; }\n"
	const sum = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	require.NoError(t, os.WriteFile(objects, []byte(sum+" images/00/a\n"+sum+" images/11/b\n"), 0o600))
	folder := filepath.Join(t.TempDir(), "files")
	output, err := bash(t, stub+fetch+"fetch_objects "+folder)
	require.NoError(t, err, output)
	assert.Contains(t, output, "https://b.s3.r.amazonaws.com/images/00/a\nhttps://b.s3.r.amazonaws.com/images/11/b\n")
	assert.FileExists(t, filepath.Join(folder, "b"))

	require.NoError(t, os.WriteFile(objects, []byte(strings.Repeat("0", 64)+" images/00/a\n"+sum+" images/11/c\n"), 0o600))
	output, err = bash(t, stub+fetch+"fetch_objects "+folder)
	require.Error(t, err, output)
	assert.NoFileExists(t, filepath.Join(folder, "c"), "fetch_objects must stop at the first file with a wrong checksum")
}
