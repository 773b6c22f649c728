//go:build stack

// Package stack starts the stack of compose.yaml with Docker, runs soaks against it and removes it.
package stack

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/offline"
)

const (
	root    = "../.."
	project = "sse-soak-test"
	// version is the version that the image of the backend must report.
	version = "v0-tested"
)

// projectFilter limits docker to the containers, volumes and networks of this test.
var projectFilter = []string{"--filter", "label=com.docker.compose.project=" + project}

// internalPorts are the ports of the services on the loopback interface.
var internalPorts = []string{"3000", "9090", "9093", "9100", "9113", "9145", "9180"}

// A stack is the running stack of a test.
type stack struct {
	t       *testing.T
	env     map[string]string
	file    string // path of the .env file with env
	grafana bool   // the image of Grafana is available
	url     string // URL for clients, at an address of this host that is not loopback
}

// imageBuild builds the images once for all tests. If it fails, later tests fail, because the images are missing.
var imageBuild sync.Once

// start builds the images, writes the settings and starts all services.
func start(t *testing.T, settings map[string]string) *stack {
	t.Helper()
	offline.NeedDocker(t, "compose")
	removeLeftovers(t)
	for _, port := range internalPorts {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		require.NoError(t, err, "port %s must be free", port)
		require.NoError(t, l.Close())
	}
	s := &stack{t: t, env: map[string]string{}, file: filepath.Join(t.TempDir(), ".env")}
	run(t, time.Minute, "infra/compose/env", s.file)
	text, err := os.ReadFile(s.file)
	require.NoError(t, err)
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			s.env[name] = value
		}
	}
	s.set(map[string]string{"NOFILE": "20000", "VERSION": version, "COMPOSE_FILE": "compose.yaml:test/stack/images.yaml"})
	s.set(settings)

	if s.grafana = offline.Images(t, root, s.file); !s.grafana {
		// The classic builder uses local images without a registry.
		t.Setenv("DOCKER_BUILDKIT", "0")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.compose("ps", "-a") + s.compose("logs", "--tail", "40"))
		}
		s.down()
	})
	imageBuild.Do(func() {
		// The images share a build stage, which Docker runs only once if it does not build them at the same time.
		t.Logf("built the image of the backend in %v, and the others in %v", s.measure("build", "--quiet", "backend-1"), s.measure("build", "--quiet"))
	})
	_, port, err := net.SplitHostPort(address.Reserve(t)) // after the builds, because the port is reserved for a minute
	require.NoError(t, err)
	s.set(map[string]string{"HTTP_PORT": port})
	s.url = "http://" + net.JoinHostPort(hostAddress(t), port)
	s.up()
	return s
}

// removeLeftovers removes the containers, volumes and networks of a killed test. Docker restarts such containers when
// the daemon starts.
func removeLeftovers(t *testing.T) {
	t.Helper()
	for _, kind := range []struct{ list, remove []string }{
		{[]string{"ps", "-aq"}, []string{"rm", "-fv"}}, {[]string{"volume", "ls", "-q"}, []string{"volume", "rm"}}, {[]string{"network", "ls", "-q"}, []string{"network", "rm"}},
	} {
		if leftovers := strings.Fields(run(t, time.Minute, "docker", append(kind.list, projectFilter...)...)); len(leftovers) > 0 {
			run(t, time.Minute, "docker", append(kind.remove, leftovers...)...)
		}
	}
}

func (s *stack) set(settings map[string]string) {
	var b strings.Builder
	for name, value := range settings {
		s.env[name] = value
	}
	for name, value := range s.env {
		fmt.Fprintf(&b, "%s=%s\n", name, value)
	}
	require.NoError(s.t, os.WriteFile(s.file, []byte(b.String()), 0o600))
}

// up starts the services that do not run yet, and waits until they are healthy.
func (s *stack) up() {
	s.t.Helper()
	args := []string{"up", "-d", "--wait", "--wait-timeout", "180", "--quiet-pull"}
	if !s.grafana {
		args = append(args, "--pull", "never", "--scale", "grafana=0")
	}
	s.t.Logf("up and healthy in %v", s.measure(args...))
}

func (s *stack) measure(args ...string) time.Duration {
	s.t.Helper()
	start := time.Now()
	s.compose(args...)
	return time.Since(start).Round(100 * time.Millisecond)
}

func (s *stack) compose(args ...string) string {
	s.t.Helper()
	return run(s.t, 15*time.Minute, "docker", append([]string{"compose", "-p", project, "--env-file", s.file}, args...)...)
}

// down removes the stack, and asserts that no object remains.
func (s *stack) down() {
	s.compose("--profile", "*", "down", "-v", "--remove-orphans", "--timeout", "10")
	for _, kind := range [][]string{{"ps", "-aq"}, {"volume", "ls", "-q"}, {"network", "ls", "-q"}} {
		leftovers := run(s.t, time.Minute, "docker", append(kind, projectFilter...)...)
		require.Empty(s.t, strings.TrimSpace(leftovers), "docker %s must list nothing", strings.Join(kind, " "))
	}
	for _, port := range append(internalPorts, s.env["HTTP_PORT"]) {
		l, err := net.Listen("tcp", ":"+port)
		require.NoError(s.t, err, "port %s must be free again", port)
		require.NoError(s.t, l.Close())
	}
}

// run runs a command in the repository and returns its output. It removes settings from the environment, because the
// .env file has all settings.
func run(t *testing.T, timeout time.Duration, name string, args ...string) string {
	t.Helper()
	return runWith(t, timeout, nil, name, args...)
}

// runWith is like run, with additional environment variables.
func runWith(t *testing.T, timeout time.Duration, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	if strings.Contains(name, "/") {
		path, err := filepath.Abs(filepath.Join(root, name))
		require.NoError(t, err)
		cmd.Path, cmd.Err = path, nil
	}
	cmd.Dir = root
	cmd.Env = append([]string(nil), env...)
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "CONNECTIONS", "NOOP_INTERVAL", "BACKEND_TOKEN", "COMPOSE_PROFILES", "SECONDS", "RUNNERS", "BACKEND_URL", "PREFIX", "OUT":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "%s %s\n%s", name, strings.Join(args, " "), &out)
	return out.String()
}

func hostAddress(t *testing.T) string {
	t.Helper()
	host, err := address.Host()
	require.NoError(t, err)
	require.NotEmpty(t, host, "this machine must have an address other than loopback")
	return host
}
