//go:build aws

package check

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/offline"
	"github.com/sse-soak/sse-soak/test/untested"
)

const (
	statusParameter  = "/sse-soak/stack/status"
	secretsParameter = "/sse-soak/stack/secrets"
	endParameter     = "/sse-soak/end"
)

// TestBoot boots the hosts with the user data that Terraform renders. The host of the stack has systemd, cloud-init,
// its own Docker and the stack of this repository. The test waits until the stack answers on its port, and then reboots
// the host. The subtest for runners also covers a failed setup and the end of a host. cloud_test.go simulates the
// metadata and the parameters of AWS. Stand-ins replace images that are not available offline.
func TestBoot(t *testing.T) {
	t.Parallel()
	needsMachines(t)
	files := stackFiles(t)
	site := newSite(t)
	userData := userData(t)
	objects, data := bucketObjects(t, userData["stack.host"], "stack", files)

	t.Run("the stack", func(t *testing.T) {
		t.Parallel()
		c := site.cloud(t, statusParameter, secretsParameter)
		c.files = objects
		started := time.Now()
		m := site.boot(t, c, data)
		await(t, 20*time.Minute, "the host did not report", m, func() bool { return !strings.HasPrefix(c.parameter(statusParameter), "pending") })
		require.Equal(t, "ready "+instanceID, c.parameter(statusParameter))
		t.Logf("ready after %v", time.Since(started).Round(time.Second))
		m.checkSetup(c)
		m.checkReboot(started)
	})

	t.Run("runners", func(t *testing.T) {
		t.Parallel()
		bootRunners(t, site, userData)
	})
}

func (m *machine) checkSetup(c *cloud) {
	t := m.t
	assert.Empty(t, c.rejections)
	assert.Contains(t, m.sh("cat /var/log/cloud-init-output.log"), "SOAK-SETUP DONE")
	assert.Contains(t, m.sh("cloud-init schema --config-file /var/lib/cloud/instance/user-data.txt 2>&1"), "Valid cloud-config")
	assert.Equal(t, shippedImage(t), m.sh("docker image inspect -f '{{.Id}}' sse-soak/backend:local"), "the host must use the image that this machine built")
	assert.Equal(t, "8192 8", m.sh("echo $(cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_retries2)"))
	m.checkUpdatesDisabled()
	assert.Equal(t, "600", m.sh("stat -c %a /opt/sse-soak/.env"))
	secretLines := strings.Split(strings.TrimSpace(c.parameter(secretsParameter)), "\n")
	require.Len(t, secretLines, 3)
	env := "\n" + m.sh("cat /opt/sse-soak/.env") + "\n"
	for _, line := range append(secretLines, "CONNECTIONS=1200", "NOOP_INTERVAL=15", "COMPOSE_PROFILES=reference", "PUBLIC_URL=http://localhost:8080", "NODE_TEXTFILES=/host/var/lib/prometheus/node-exporter") {
		assert.Contains(t, env, "\n"+line+"\n")
	}
	m.checkNotices()
	m.checkResponses(strings.TrimPrefix(secretLines[0], "BACKEND_TOKEN="))
}

// shippedImage returns the id of the backend's image in the archive for the host. On this machine, the tag may belong
// to another image, because the tests of the stack can run at the same time and build their own.
func shippedImage(t *testing.T) string {
	t.Helper()
	manifest := run(t, root, "tar", "-xzOf", "bin/aws-test/stack/image-sse-soak-backend-local.tar.gz", "manifest.json")
	id := regexp.MustCompile(`"Config":"(?:blobs/sha256/)?([0-9a-f]{64})`).FindStringSubmatch(manifest)
	require.NotNil(t, id, manifest)
	return "sha256:" + id[1]
}

// checkUpdatesDisabled checks that apt waits for its lock and retries, and that no timer updates packages during a run.
func (m *machine) checkUpdatesDisabled() {
	m.t.Helper()
	options := m.sh("apt-config dump")
	for _, want := range []string{`APT::Periodic::Enable "0"`, `DPkg::Lock::Timeout "600"`, `Acquire::Retries "5"`} {
		assert.Contains(m.t, options, want)
	}
	for _, unit := range []string{"apt-daily.timer", "apt-daily-upgrade.timer", "apt-daily-upgrade.service"} {
		assert.Equal(m.t, "masked inactive", m.sh("echo $(systemctl is-enabled "+unit+"; systemctl is-active "+unit+")"), unit)
	}
}

// checkResponses checks that the stack answers and streams events on the ports that are open to the outside.
func (m *machine) checkResponses(token string) {
	t := m.t
	for path, want := range map[string]int{"/readyz": http.StatusOK, "/metrics": http.StatusOK, "/prometheus/-/ready": http.StatusUnauthorized} {
		req, err := http.NewRequest(http.MethodGet, "http://"+m.ip+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, want, resp.StatusCode, "%s: %s", path, body)
	}
	for _, path := range []string{"/event/connect?id=boot", ":7070"} { // streams of the backend and of the reference
		resp, err := (&http.Client{Timeout: 20 * time.Second}).Get("http://" + m.ip + path)
		require.NoError(t, err)
		assert.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
		require.NoError(t, resp.Body.Close())
	}
}

// checkReboot checks that after a reboot the stack answers, the setup does not run again, and the end is unchanged.
func (m *machine) checkReboot(started time.Time) {
	t := m.t
	timer := "grep OnCalendar /etc/systemd/system/soak-end.timer"
	end, err := time.Parse("2006-01-02 15:04:05 MST", strings.TrimPrefix(m.sh(timer), "OnCalendar="))
	require.NoError(t, err)
	assert.WithinDuration(t, started.Add(180*time.Minute), end, 5*time.Minute)
	nextElapse := m.sh("systemctl show -p NextElapseUSecRealtime soak-end.timer")
	run(t, ".", "docker", "stop", "-t", "60", m.name)
	m.start()
	await(t, 3*time.Minute, "the stack did not answer", m, func() bool {
		resp, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + m.ip + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	assert.Equal(t, nextElapse, m.sh("systemctl show -p NextElapseUSecRealtime soak-end.timer"))
	assert.Equal(t, "1", m.sh("grep -c 'SOAK-SETUP DONE' /var/log/cloud-init-output.log"))
}

// checkFailedSetup runs the setup again, with corrupted files in the bucket and without pauses between attempts.
func (m *machine) checkFailedSetup(c *cloud, status string) {
	t := m.t
	for key := range c.files {
		c.files[key] = "something else"
	}
	m.sh("systemctl disable --now soak-end.timer && rm /etc/systemd/system/soak-end.timer && mkdir /run/bin && ln -s /bin/true /run/bin/sleep")
	m.sh("! PATH=/run/bin:$PATH bash /opt/soak/setup.sh >>/var/log/cloud-init-output.log 2>&1")
	assert.Regexp(t, `^failed `+instanceID+` at node.sh line \d+: fetch_objects`, c.parameter(status))
	assert.Contains(t, c.parameter(status), "FAILED", "the status must contain the end of the log")
	assert.Contains(t, m.sh("cat /var/log/cloud-init-output.log"), "SOAK-SETUP FAILED")
	assert.Equal(t, "active", m.sh("systemctl is-active soak-end.timer"), "a host whose setup failed must also terminate")
	assert.Empty(t, c.rejections)
}

// checkExtension checks that the host does not shut down at its planned end if a later end is stored.
func (m *machine) checkExtension(c *cloud) {
	t := m.t
	later := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Second)
	c.store(endParameter, later.Format(time.RFC3339))
	m.sh("systemctl start soak-end.service")
	assert.Equal(t, "running", m.state())
	assert.Equal(t, "OnCalendar="+later.Format("2006-01-02 15:04:05 MST"), m.sh("grep OnCalendar /etc/systemd/system/soak-end.timer"))
	assert.Equal(t, "active", m.sh("systemctl is-active soak-end.timer"))
	c.store(endParameter, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)) // in the past for the next check
}

// checkEnd checks that a host shuts down as soon as it has booted, if its planned end passed while it was off.
func (m *machine) checkEnd() {
	t := m.t
	// systemd compares the date with the time at which the timer was first started.
	m.sh(`sed -i 's/^OnCalendar=.*/OnCalendar=2020-01-01 03:00:00 UTC/' /etc/systemd/system/soak-end.timer`)
	m.sh(`touch -d '2020-01-01 00:00:00 UTC' /var/lib/systemd/timers/stamp-soak-end.timer`)
	run(t, ".", "docker", "stop", "-t", "60", m.name)
	m.start()
	await(t, 2*time.Minute, "the host did not shut down", m, func() bool { return m.state() == "exited" })
}

// await waits until done returns true. After the timeout, it fails the test with the failure and the log of the host.
func await(t *testing.T, timeout time.Duration, failure string, m *machine, done func() bool) {
	t.Helper()
	for started := time.Now(); !done(); time.Sleep(time.Second) {
		if time.Since(started) > timeout {
			t.Fatalf("%s within %v\n%s", failure, timeout, m.log())
		}
	}
}

// stackFiles returns the folder of files that `make aws-up` collects for the stack's host, with three changes. It omits
// Grafana if its image is unavailable, lowers the limit on open files, and omits settings that a stand-in for
// Prometheus rejects.
func stackFiles(t *testing.T) (folder string) {
	buildStackImages(t)
	env := filepath.Join(t.TempDir(), ".env")
	run(t, root, "infra/compose/env", env)
	standIns := !offline.Images(t, root, env)
	images := strings.Fields(run(t, root, "docker", "compose", "--env-file", env, "--profile", "reference", "config", "--images"))
	if exec.Command("docker", "image", "inspect", "grafana/grafana:12.4.4").Run() != nil {
		images = slices.DeleteFunc(images, func(n string) bool { return strings.HasPrefix(n, "grafana/") })
	}
	repository, err := filepath.Abs(root)
	require.NoError(t, err)
	out := filepath.Join(repository, "bin/aws-test")
	dir := t.TempDir()
	run(t, repository, "sh", "-c", "git ls-files -z compose.yaml .env.example infra grafana | tar --null -T - -c | tar -x -C "+dir)
	edit := func(name, pattern, to string) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), regexp.MustCompile(pattern).ReplaceAll(text, []byte(to)), 0o644))
	}
	edit(".env.example", `(?m)^NOFILE=.*$`, "NOFILE=20000")
	if len(images) > 0 && !slices.ContainsFunc(images, func(n string) bool { return strings.HasPrefix(n, "grafana/") }) {
		override := "services: {grafana: {profiles: [no-registry]}}\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "compose.override.yaml"), []byte(override), 0o644))
	}
	if standIns {
		untested.Note(t, "discovery of the runners' hosts on the stack's host, because the stand-in for Prometheus has no EC2 discovery")
		edit("infra/prometheus/runners-aws.yml", `(?s).*`, "")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bundle.yaml"), nil, 0o600))
	run(t, dir, "env", "OUT="+out, "STACK_IMAGES="+strings.Join(images, " "), "ONLY=stack", "infra/terraform/files", "amd64")
	return filepath.Join(out, "stack")
}

// stackImages prevents two tests from building the images in bin/stack at the same time.
var stackImages sync.Mutex

func buildStackImages(t *testing.T) {
	t.Helper()
	stackImages.Lock()
	defer stackImages.Unlock()
	run(t, root, "make", "--no-print-directory", "stack-images")
}

// bucketObjects returns the files of a folder as objects of the bucket, by URL. It also returns the user data with a
// list of these objects, which replaces the list of the files for Terraform's tests.
func bucketObjects(t *testing.T, data, kind, folder string) (objects map[string]string, newData string) {
	t.Helper()
	objects = map[string]string{}
	var lines []string
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		require.NoError(t, err)
		sum := fmt.Sprintf("%x", sha256.Sum256(text))
		objects[bucketHost+"/images/"+sum[:16]+"/"+f.Name()] = string(text)
		lines = append(lines, sum+" images/"+sum[:16]+"/"+f.Name())
	}
	objectList := regexp.MustCompile(`(?m)^( *)[0-9a-f]{64} images/.*\n(?: *[0-9a-f]{64} images/.*\n)*`)
	indent := objectList.FindStringSubmatch(data)
	require.NotNil(t, indent, "the user data of %s list no objects:\n%s", kind, data)
	return objects, strings.Replace(data, indent[0], indent[1]+strings.Join(lines, "\n"+indent[1])+"\n", 1)
}

// k3s is a script that replaces k3s. It records its arguments and notifies systemd that it is ready.
const k3s = `#!/bin/bash
if [[ $1 == kubectl ]]; then echo "$*" >>/run/k3s-called; exit; fi
echo "$K3S_TOKEN $*" >/run/k3s-installed
mkdir -p /etc/rancher/k3s
echo "server: https://127.0.0.1:6443" >/etc/rancher/k3s/k3s.yaml
exec python3 -c 'import os, signal, socket
name = os.environ["NOTIFY_SOCKET"]
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", "\0" + name[1:] if name[0] == "@" else name)
signal.pause()'
`

// bootRunners boots the hosts of the runners with a stand-in for k3s, and checks the files, the parameters and the
// calls. The agent starts before the server, so the agent must wait for the token that the server creates.
func bootRunners(t *testing.T, site *site, userData map[string]string) {
	t.Helper()
	untested.Note(t, "k3s and the k6-operator on the runners' hosts")
	const (
		token, kubeconfig         = "/sse-soak/runners/token", "/sse-soak/runners/kubeconfig"
		serverStatus, agentStatus = "/sse-soak/runners/status-0", "/sse-soak/runners/status-2"
	)
	folder := t.TempDir()
	for name, text := range map[string]string{"k3s": k3s, "operator.yaml": "kind: Bundle\n", "image-k6.tar.gz": "an image\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	c := site.cloud(t, token, kubeconfig, serverStatus, agentStatus, endParameter)
	objects, agentData := bucketObjects(t, userData["runners.agents"], "agents", folder)
	_, serverData := bucketObjects(t, userData["runners.server"], "server", folder)
	c.files = objects
	agent := site.boot(t, c, agentData)
	server := site.boot(t, c, serverData)
	for status, m := range map[string]*machine{serverStatus: server, agentStatus: agent} {
		await(t, 8*time.Minute, "the host did not report", m, func() bool { return !strings.HasPrefix(c.parameter(status), "pending") })
		require.Equal(t, "ready "+instanceID, c.parameter(status))
	}
	assert.Empty(t, c.rejections)
	clusterToken := c.parameter(token)
	assert.Regexp(t, regexp.MustCompile(`^[0-9a-f]{64}$`), clusterToken)
	assert.Equal(t, "# "+instanceID+"\nserver: https://127.0.0.1:6443\n", c.parameter(kubeconfig), "the first line must name the host that stored the parameter")
	assert.Contains(t, server.sh("cat /run/k3s-installed"), clusterToken+" server --disable=traefik")
	assert.Contains(t, server.sh("cat /run/k3s-called"), "kubectl apply --server-side -f /opt/soak/files/operator.yaml")
	assert.Equal(t, clusterToken+" agent --server=https://10.20.0.10:6443 --node-ip=10.20.0.11", agent.sh("cat /run/k3s-installed"))
	for _, m := range []*machine{server, agent} {
		assert.Equal(t, "an image", m.sh("cat /var/lib/rancher/k3s/agent/images/image-k6.tar.gz"))
		assert.Equal(t, "1024\t65535", m.sh("cat /proc/sys/net/ipv4/ip_local_port_range"))
		assert.Equal(t, "active", m.sh("systemctl is-active soak-end.timer"))
		m.checkNotices()
		m.checkUpdatesDisabled()
		m.checkExporter()
	}
	checkDiscovery(t, map[string]string{"runner-1": server.ip, "runner-3": agent.ip})
	agent.checkFailedSetup(c, agentStatus)
	agent.checkExtension(c)
	agent.checkEnd()
}
