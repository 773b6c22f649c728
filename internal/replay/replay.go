// Package replay starts a Prometheus on data of the past, and Grafana with the dashboards beside it, on ports of this
// machine's loopback interface that are free. Both end with Stop, or with the program.
package replay

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

// The images that are started where there is no program: those of compose.yaml, which a test compares. An archive does not
// choose what is run here.
const (
	PrometheusImage = "prom/prometheus:v3.15.0"
	GrafanaImage    = "grafana/grafana:12.4.4"
)

const (
	readyWithin  = time.Minute
	pulledWithin = 5 * time.Minute // where an image has to be pulled first
	stopWithin   = 20 * time.Second
	dockerWithin = 10 * time.Second
	logExcerpt   = 500 // bytes of the end of a log
)

// A Service is what was started.
type Service struct {
	URL string

	name      string
	process   *process.Process
	container string // its name in Docker; "": none
	log       string
}

// Prometheus starts an empty one that takes remote writes and scrapes nothing. dir is a folder of its own.
func Prometheus(ctx context.Context, dir string) (*Service, error) {
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte("# Nothing is scraped: what is asked for here is of the past.\nglobal: {}\n"), 0o644); err != nil { //nolint:gosec // G306: Prometheus's container has another user
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Service{name: "Prometheus", URL: "http://127.0.0.1:" + port, log: filepath.Join(dir, "prometheus.log")}
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
		return s, s.await(ctx, "/-/ready", readyWithin)
	}
	if !docker(ctx) {
		return nil, errors.New("there is neither the program prometheus (apt-get install prometheus, brew install prometheus) nor a Docker that answers")
	}
	const inside = "/etc/prometheus/prometheus.yml"
	err = s.run(port, "9090", []string{"--volume", config + ":" + inside + ":ro"}, PrometheusImage, func(listen string) []string { return args(inside, "/prometheus", listen) })
	if err != nil {
		return nil, err
	}
	return s, s.await(ctx, "/-/ready", pulledWithin)
}

// start starts a program.
func (s *Service) start(path string, args ...string) (err error) {
	s.process, err = process.Start(process.Spec{Name: s.name, Path: path, Args: args, Env: os.Environ(), Log: s.log, Orphan: syscall.SIGTERM})
	return err
}

// run starts a container that is gone when it ends. On Linux it is on the host's network, whose loopback interface is then
// enough; elsewhere Docker is in a machine of its own, and publishes the port.
func (s *Service) run(port, inner string, options []string, image string, args func(listen string) []string) error {
	s.container = "soak-open-" + strings.ToLower(rand.Text()[:10])
	listen := "127.0.0.1:" + port
	network := []string{"--network", "host"}
	if runtime.GOOS != "linux" {
		listen, network = "0.0.0.0:"+inner, []string{"--publish", "127.0.0.1:" + port + ":" + inner, "--add-host", hostInside + ":host-gateway"}
	}
	all := append([]string{"run", "--rm", "--name", s.container}, network...)
	all = append(append(all, options...), image)
	return s.start("docker", append(all, args(listen)...)...)
}

// hostInside is this machine as a container sees it that is not on its network.
const hostInside = "host.docker.internal"

// await waits until a path answers 200. Where it does not, nothing is left running.
func (s *Service) await(ctx context.Context, path string, within time.Duration) error {
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, within)
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
			err = fmt.Errorf("%s ended: %s", s.name, s.Said())
		case <-ctx.Done():
			if err = asked.Err(); err == nil { // else it was interrupted
				err = fmt.Errorf("%s did not become ready: %s", s.name, s.Said())
			}
		case <-time.After(100 * time.Millisecond):
			continue
		}
		s.Stop()
		return err
	}
}

// Said is the end of what it wrote.
func (s *Service) Said() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	text = text[max(0, len(text)-logExcerpt):]
	if len(text) == 0 {
		return "it said nothing"
	}
	return strings.TrimSpace(string(text))
}

// Done is closed when it has ended, whoever ended it.
func (s *Service) Done() <-chan struct{} { return s.process.Done() }

// Stop ends it, and waits for its end.
func (s *Service) Stop() {
	s.process.Stop(context.Background(), syscall.SIGTERM, stopWithin)
	if s.container == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	_ = exec.CommandContext(ctx, "docker", "rm", "--force", "--volumes", s.container).Run() //nolint:gosec // G204: our container's name; mostly it is gone
}

// docker says whether there is a Docker that answers.
func docker(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, dockerWithin)
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
