package archive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
)

const (
	readyTimeout = time.Minute
	stopTimeout  = 20 * time.Second
	logExcerpt   = 500 // bytes of the end of a log
)

// A Server is a Prometheus server on a free port of the loopback interface. It ends with Stop, or with this program.
type Server struct {
	URL string

	process *process.Process
	log     string
}

// StartPrometheus starts a Prometheus server without data, with its files in dir, and waits until it accepts remote
// writes.
func StartPrometheus(ctx context.Context, dir string) (*Server, error) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		return nil, errors.New("start Prometheus: the program is not installed; install it (apt-get install prometheus, brew install prometheus)")
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte("# This server scrapes nothing, because its data is loaded.\nglobal: {}\n"), 0o600); err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + address, log: filepath.Join(dir, "prometheus.log")}
	s.process, err = process.Start(process.Spec{Name: "Prometheus", Path: program, Env: os.Environ(), Log: s.log, OrphanSignal: syscall.SIGTERM, Args: []string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "tsdb"), "--storage.tsdb.retention.time=100y", "--web.listen-address=" + address,
		"--web.enable-remote-write-receiver", "--enable-feature=native-histograms", "--log.level=warn", // before Prometheus 3, native histograms need the feature flag
	}})
	if err != nil {
		return nil, err
	}
	return s, s.await(ctx)
}

// await waits until the server is ready. It stops the server before it returns an error.
func (s *Server) await(ctx context.Context) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/-/ready", nil)
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
			err = fmt.Errorf("start Prometheus: the process ended: %s", s.LogEnd())
		case <-ctx.Done():
			if err = caller.Err(); err == nil { // a timeout, not an interruption
				err = fmt.Errorf("start Prometheus: not ready within %v: %s", readyTimeout, s.LogEnd())
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
func (s *Server) Stop() { s.process.Stop(context.Background(), syscall.SIGTERM, stopTimeout) }

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
