//go:build aws

package check

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
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
	debianImage = "soak-test/debian:12"

	region     = "us-east-1" // the default
	apiAddr    = "169.254.170.1"
	apiHost    = "ssm." + region + ".amazonaws.com"
	bucketHost = "sse-soak-mock.s3." + region + ".amazonaws.com"
	githubHost = "raw.githubusercontent.com"
)

// network makes a network of the test's own, and gives the address by which this machine is in it.
func network(t *testing.T) (name, gateway string) {
	t.Helper()
	name = fmt.Sprintf("soak-aws-test-%d", time.Now().UnixNano())
	run(t, ".", "docker", "network", "create", name)
	t.Cleanup(func() { run(t, ".", "docker", "network", "rm", name) })
	gateway = strings.TrimSpace(run(t, ".", "docker", "network", "inspect", name, "-f", "{{(index .IPAM.Config 0).Gateway}}"))
	return name, gateway
}

// buildHost makes the image of an empty host, once for each version of its Dockerfile.
func buildHost(t *testing.T, network string) (image string) {
	t.Helper()
	begun := time.Now()
	dockerfile, err := os.ReadFile("testdata/host/Dockerfile")
	require.NoError(t, err)
	image = fmt.Sprintf("soak-test/host:%x", sha256.Sum256(dockerfile))[:30]
	if exec.Command("docker", "image", "inspect", image).Run() == nil {
		return image
	}
	if exec.Command("docker", "image", "inspect", debianImage).Run() != nil {
		rootfs := filepath.Join(t.TempDir(), "rootfs")
		run(t, ".", "debootstrap", "--variant=minbase", "bookworm", rootfs)
		trusted, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(rootfs, "etc/ssl/certs"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(rootfs, "etc/ssl/certs/ca-certificates.crt"), trusted, 0o644))
		run(t, ".", "sh", "-c", fmt.Sprintf("tar -C %s -c . | docker import - %s", rootfs, debianImage))
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/host")))
	for name, plugin := range map[string]string{"docker-compose-v2": "docker-compose", "docker-buildx": "docker-buildx"} {
		packagePlugin(t, dir, name, plugin)
	}
	t.Setenv("DOCKER_BUILDKIT", "0")
	run(t, dir, "docker", "build", "-q", "--network", network, "-t", image, ".")
	t.Logf("an empty host is made in %v", time.Since(begun).Round(time.Second))
	return image
}

// packagePlugin makes NAME.deb, with a plugin of this machine's Docker in it.
func packagePlugin(t *testing.T, dir, name, plugin string) {
	t.Helper()
	var from string
	for _, place := range []string{filepath.Join(os.Getenv("HOME"), ".docker/cli-plugins"), "/usr/libexec/docker/cli-plugins", "/usr/lib/docker/cli-plugins"} {
		if _, err := os.Stat(filepath.Join(place, plugin)); err == nil {
			from = filepath.Join(place, plugin)
		}
	}
	require.NotEmpty(t, from, "this machine's Docker has no plugin %s", plugin)
	tree := filepath.Join(dir, name)
	target := filepath.Join(tree, "usr/libexec/docker/cli-plugins")
	require.NoError(t, os.MkdirAll(target, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "DEBIAN"), 0o755))
	run(t, dir, "install", "-m", "755", from, target)
	control := "Package: " + name + "\nVersion: 99\nArchitecture: all\nMaintainer: test <test@example.com>\nDescription: " + plugin + " of this machine\n"
	require.NoError(t, os.WriteFile(filepath.Join(tree, "DEBIAN/control"), []byte(control), 0o644))
	run(t, dir, "dpkg-deb", "-Znone", "-b", tree, filepath.Join(dir, name+".deb"))
	require.NoError(t, os.RemoveAll(tree))
}

// A machine is a host that was started: a container with systemd, cloud-init and a Docker of its own.
type machine struct {
	t    *testing.T
	name string
	ip   string
}

// boot starts a host with user data, in a cloud. files are laid on its disk before, and an archive
// of images, if there is one.
func boot(t *testing.T, image, network string, c *cloud, userData string, files map[string][]byte, images string) *machine {
	t.Helper()
	m := &machine{t: t, name: fmt.Sprintf("soak-aws-test-%d", time.Now().UnixNano())}
	groups := []string{"--cgroupns", "private"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil { // version 1
		groups = []string{"--cgroupns", "host", "-v", "/sys/fs/cgroup:/sys/fs/cgroup:rw"}
	}
	args := append([]string{"create", "--name", m.name, "--hostname", "stack", "--network", network,
		"--cap-add", "SYS_ADMIN", "--cap-add", "NET_ADMIN", "--cap-add", "SYS_PTRACE", "--cap-add", "DAC_READ_SEARCH",
		"--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined", "--security-opt", "systempaths=unconfined",
		"--tmpfs", "/run", "--tmpfs", "/run/lock", "--add-host", apiHost + ":" + apiAddr, "--add-host", bucketHost + ":" + apiAddr, "--add-host", githubHost + ":" + apiAddr}, groups...)
	run(t, ".", "docker", append(args, image)...)
	t.Cleanup(m.remove)
	files["var/lib/cloud/seed/nocloud/user-data"] = []byte(userData)
	files["var/lib/cloud/seed/nocloud/meta-data"] = []byte("instance-id: i-0123456789abcdef0\n")
	files["etc/systemd/system/cloud-addresses.service"] = addresses(c)
	m.lay(files)
	if images != "" {
		run(t, ".", "docker", "cp", images, m.name+":/srv/images.tar")
	}
	m.start()
	return m
}

// addresses is a unit that leads AWS's addresses to the cloud.
func addresses(c *cloud) []byte {
	var b strings.Builder
	b.WriteString("[Unit]\nBefore=cloud-final.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\n")
	for from, to := range map[string]net.Addr{"169.254.169.254 --dport 80": c.metadata.Listener.Addr(), apiAddr + " --dport 443": c.api.Listener.Addr()} {
		address, port, _ := strings.Cut(from, " ")
		fmt.Fprintf(&b, "ExecStart=/usr/sbin/iptables -t nat -A OUTPUT -d %s -p tcp %s -j DNAT --to-destination %s\n", address, port, to)
	}
	b.WriteString("[Install]\nWantedBy=multi-user.target\n")
	return []byte(b.String())
}

// lay puts files on the disk; a name that ends in .service is enabled too.
func (m *machine) lay(files map[string][]byte) {
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
	said, err := cmd.CombinedOutput()
	require.NoError(m.t, err, "%s", said)
}

// start starts it, also after it was stopped: a reboot.
func (m *machine) start() {
	m.t.Helper()
	run(m.t, ".", "docker", "start", m.name)
	m.ip = strings.TrimSpace(run(m.t, ".", "docker", "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", m.name))
}

// sh runs a command on it.
func (m *machine) sh(command string) string {
	m.t.Helper()
	return strings.TrimSpace(run(m.t, ".", "docker", "exec", m.name, "sh", "-c", command))
}

// log is what the setup said.
func (m *machine) log() string {
	said, err := exec.Command("docker", "exec", m.name, "sh", "-c", "tail -n 60 /var/log/cloud-init-output.log; systemctl --failed --no-pager").CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return string(said)
}

// remove takes it down as a host goes down, so that its own containers end in order.
func (m *machine) remove() {
	if m.t.Failed() {
		m.t.Log(m.log())
	}
	_ = exec.Command("docker", "stop", "-t", "60", m.name).Run()
	run(m.t, ".", "docker", "rm", "-fv", m.name)
}

// state is what Docker calls it: running, exited.
func (m *machine) state() string {
	return strings.TrimSpace(run(m.t, ".", "docker", "inspect", "-f", "{{.State.Status}}", m.name))
}
