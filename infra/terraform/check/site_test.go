//go:build aws

package check

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/certificate"
	"github.com/sse-soak/sse-soak/test/offline"
	"github.com/sse-soak/sse-soak/test/untested"
)

const debianImage = "soak-test/debian:12"

// needsMachines skips a test if this machine cannot boot a host.
func needsMachines(t *testing.T) {
	t.Helper()
	offline.NeedDocker(t, "compose", "buildx")
	needs(t, "debootstrap", "apt-get install debootstrap")
	if os.Geteuid() != 0 {
		untested.Skip(t, "creating and booting a host needs root")
	}
}

// A site has the image, the network and the certificates for hosts.
type site struct {
	image, network, gateway string
	certificate             tls.Certificate
	authorities             []byte // certificates that a host trusts, in PEM
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	s.network, s.gateway = network(t)
	s.image = buildHost(t, s.network)
	ca := certificate.NewAuthority(t)
	s.certificate = *ca.Server(apiHost, bucketHost)
	authority, _ := certificate.PEM(t, ca.Certificate)
	authorities, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	require.NoError(t, err)
	s.authorities = append(authorities, authority...)
	return s
}

// network creates a network for the test, and returns the address of this machine in it.
func network(t *testing.T) (name, gateway string) {
	t.Helper()
	name = fmt.Sprintf("soak-aws-test-%d", time.Now().UnixNano())
	run(t, ".", "docker", "network", "create", name)
	t.Cleanup(func() { run(t, ".", "docker", "network", "rm", name) })
	gateway = strings.TrimSpace(run(t, ".", "docker", "network", "inspect", name, "-f", "{{(index .IPAM.Config 0).Gateway}}"))
	return name, gateway
}

// buildHost builds the image of an empty host, once for each version of its Dockerfile.
func buildHost(t *testing.T, network string) (image string) {
	t.Helper()
	started := time.Now()
	dockerfile, err := os.ReadFile("testdata/host/Dockerfile")
	require.NoError(t, err)
	image = fmt.Sprintf("soak-test/host:%x", sha256.Sum256(dockerfile))[:30]
	if exec.Command("docker", "image", "inspect", image).Run() == nil {
		return image
	}
	if exec.Command("docker", "image", "inspect", debianImage).Run() != nil {
		rootfs := filepath.Join(t.TempDir(), "rootfs")
		run(t, ".", "debootstrap", "--variant=minbase", "bookworm", rootfs)
		authorities, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(rootfs, "etc/ssl/certs"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(rootfs, "etc/ssl/certs/ca-certificates.crt"), authorities, 0o644))
		run(t, ".", "sh", "-c", fmt.Sprintf("tar -C %s -c . | docker import - %s", rootfs, debianImage))
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/host")))
	for name, plugin := range map[string]string{"docker-compose-v2": "docker-compose", "docker-buildx": "docker-buildx"} {
		packagePlugin(t, dir, name, plugin)
	}
	run(t, dir, "env", "DOCKER_BUILDKIT=0", "docker", "build", "-q", "--network", network, "-t", image, ".")
	t.Logf("built an empty host in %v", time.Since(started).Round(time.Second))
	return image
}

// packagePlugin builds NAME.deb, which contains a plugin of this machine's Docker.
func packagePlugin(t *testing.T, dir, name, plugin string) {
	t.Helper()
	var from string
	for _, folder := range []string{filepath.Join(os.Getenv("HOME"), ".docker/cli-plugins"), "/usr/libexec/docker/cli-plugins", "/usr/lib/docker/cli-plugins"} {
		if _, err := os.Stat(filepath.Join(folder, plugin)); err == nil {
			from = filepath.Join(folder, plugin)
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
