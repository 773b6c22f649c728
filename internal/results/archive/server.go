package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/process"
)

// Images of Docker, if there is no program: those of compose.yaml, which a test compares. An archive does not choose them.
const (
	PrometheusImage = "prom/prometheus:v3.15.0"
	GrafanaImage    = "grafana/grafana:12.4.4"
)

const (
	readyTimeout  = time.Minute
	pullTimeout   = 5 * time.Minute // of a start that pulls an image
	stopTimeout   = 20 * time.Second
	dockerTimeout = 10 * time.Second
	logExcerpt    = 500 // bytes of the end of a log
)

// A Server is a Prometheus or a Grafana on a free port of the loopback interface. It ends with Stop, or with this program.
type Server struct {
	URL string

	name      string
	process   *process.Process
	container string // its name in Docker; "": a program
	log       string
}

// StartPrometheus starts an empty Prometheus that accepts remote writes and scrapes nothing. dir is a folder of its own.
func StartPrometheus(ctx context.Context, dir string) (*Server, error) {
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte("# It scrapes nothing: the data is of the past.\nglobal: {}\n"), 0o644); err != nil { //nolint:gosec // G306: Prometheus's container has another user
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{name: "Prometheus", URL: "http://127.0.0.1:" + port, log: filepath.Join(dir, "prometheus.log")}
	args := func(config, data, listen string) []string {
		return []string{
			"--config.file=" + config, "--storage.tsdb.path=" + data, "--storage.tsdb.retention.time=100y", "--web.listen-address=" + listen,
			"--web.enable-remote-write-receiver", "--enable-feature=native-histograms", "--log.level=warn", // a feature before Prometheus 3
		}
	}
	if program, err := exec.LookPath("prometheus"); err == nil {
		err = s.start(program, args(config, filepath.Join(dir, "tsdb"), "127.0.0.1:"+port)...)
		if err != nil {
			return nil, err
		}
		return s, s.await(ctx, "/-/ready", readyTimeout)
	}
	if !docker(ctx) {
		return nil, errors.New("there is neither the program prometheus (apt-get install prometheus, brew install prometheus) nor a Docker daemon that answers")
	}
	const inContainer = "/etc/prometheus/prometheus.yml"
	options := []string{"--volume", config + ":" + inContainer + ":ro"}
	err = s.run(port, "9090", options, PrometheusImage, func(listen string) []string { return args(inContainer, "/prometheus", listen) })
	if err != nil {
		return nil, err
	}
	return s, s.await(ctx, "/-/ready", pullTimeout)
}

// start starts a program.
func (s *Server) start(path string, args ...string) (err error) {
	s.process, err = process.Start(process.Spec{Name: s.name, Path: path, Args: args, Env: os.Environ(), Log: s.log, Orphan: syscall.SIGTERM})
	return err
}

// run starts a container that Docker removes when it ends. On Linux it uses the network of the host, so it listens on the
// loopback interface only. Elsewhere Docker runs in a virtual machine and publishes the port.
func (s *Server) run(port, inner string, options []string, image string, args func(listen string) []string) error {
	s.container = "soak-open-" + strings.ToLower(rand.Text()[:10])
	listen := "127.0.0.1:" + port
	network := []string{"--network", "host"}
	if runtime.GOOS != "linux" {
		listen, network = "0.0.0.0:"+inner, []string{"--publish", "127.0.0.1:" + port + ":" + inner, "--add-host", hostInContainer + ":host-gateway"}
	}
	all := append([]string{"run", "--rm", "--name", s.container}, network...)
	all = append(append(all, options...), image)
	return s.start("docker", append(all, args(listen)...)...)
}

// hostInContainer is the name of this machine in a container that does not use the network of the host.
const hostInContainer = "host.docker.internal"

// await waits until a path answers 200. After an error it has stopped the server.
func (s *Server) await(ctx context.Context, path string, timeout time.Duration) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.process.Done():
			err = fmt.Errorf("%s ended: %s", s.name, s.LogEnd())
		case <-ctx.Done():
			if err = caller.Err(); err == nil { // a timeout, not an interruption
				err = fmt.Errorf("%s did not become ready: %s", s.name, s.LogEnd())
			}
		case <-time.After(100 * time.Millisecond):
			continue
		}
		s.Stop()
		return err
	}
}

// LogEnd returns the end of the server's log.
func (s *Server) LogEnd() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	text = text[max(0, len(text)-logExcerpt):]
	if len(text) == 0 {
		return "its log is empty"
	}
	return strings.TrimSpace(string(text))
}

// Done returns a channel that is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.process.Done() }

// Stop ends the server and waits for its end.
func (s *Server) Stop() {
	s.process.Stop(context.Background(), syscall.SIGTERM, stopTimeout)
	if s.container == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	_ = exec.CommandContext(ctx, "docker", "rm", "--force", "--volumes", s.container).Run() //nolint:gosec // G204: our container's name; mostly it is gone
}

// docker reports whether a Docker daemon answers.
func docker(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", "info", "--format", "{{.ServerVersion}}")
	cmd.WaitDelay = time.Second
	return cmd.Run() == nil
}

func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // of a TCP listener
	return port, l.Close()
}
