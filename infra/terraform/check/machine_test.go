//go:build aws

package check

import (
	"archive/tar"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// remove removes the machine. It first shuts the machine down, as AWS would, so that the containers on it stop gracefully.
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
