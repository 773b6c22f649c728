// Command backend is the reference service that the soak command tests. It keeps many idle event streams open, at a
// cost of one file descriptor and 1 to 2 KiB each. It sends each stream a numbered noop at a fixed interval,
// and keeps a ledger of the sent noops and messages.
//
// net/http parses requests. The backend takes the connection of an accepted stream from net/http as a bare descriptor
// (connect.go). From then on one goroutine, the scheduler (hub.go), owns the descriptor. It shares large batches of
// writes with a few helpers (hub_write.go). Another goroutine waits in epoll for clients that disconnect
// (kernel_linux.go). Streams have no goroutines of their own, except under TLS (tls_writer.go).
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

const (
	exitOK    = 0
	exitError = 1  // the start, the server, the drain or the health check failed
	exitUsage = 64 // a setting is invalid
)

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	os.Exit(run(os.Args[1:], os.LookupEnv, signals, os.Stdout, os.Stderr))
}

// run returns the exit code. The first signal starts a drain; a second one ends the drain at once.
func run(args []string, env func(string) (string, bool), signals <-chan os.Signal, stdout, stderr io.Writer) int {
	raiseFileLimit()
	if len(args) > 0 && args[0] == "model" {
		return runModel(args[1:], env, signals, stdout, stderr)
	}
	cfg, verb, err := parseConfig(args, env)
	if err != nil {
		fmt.Fprintf(stderr, "backend: %v\n", err)
		return exitUsage
	}
	switch verb {
	case "help":
		fmt.Fprint(stdout, helpText())
		return exitOK
	case "version":
		fmt.Fprintln(stdout, "backend", buildVersion())
		return exitOK
	case "healthcheck":
		if err := checkHealth(cfg); err != nil {
			fmt.Fprintf(stderr, "backend: %v\n", err)
			return exitError
		}
		return exitOK
	}
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	svc, err := startService(cfg, log)
	if err != nil {
		log.Error("start failed", "error", err.Error())
		return exitError
	}
	select {
	case sig := <-signals:
		log.Info("draining", "signal", fmt.Sprint(sig), "streams", svc.hub.openStreams())
	case err := <-svc.failed:
		log.Error("server failed", "error", err.Error())
		svc.abort()
		return exitError
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		if sig, ok := <-signals; ok {
			log.Warn("second signal, stopping at once", "signal", fmt.Sprint(sig))
			cancel()
		}
	}()
	if err := svc.drain(ctx); err != nil {
		log.Error("drain incomplete", "error", err.Error())
		return exitError
	}
	log.Info("stopped")
	return exitOK
}

const healthTimeout = 3 * time.Second

var errCertificateRequested = errors.New("the service requests a client certificate")

// checkHealth is the health check of the container, whose image has no other program. It does not verify the service's
// certificate, which need not be valid for the host name "backend". It has no client certificate, so it succeeds if the
// service requests one.
func checkHealth(cfg *Config) error {
	network, address := "tcp", cfg.Listen
	if path, ok := strings.CutPrefix(cfg.Listen, "unix:"); ok {
		network, address = "unix", path
	}
	client := &http.Client{Timeout: healthTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, address)
		},
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify:   true, // #nosec G402 -- see above
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, errCertificateRequested },
		},
	}}
	scheme := "http"
	if cfg.TLSCert != "" {
		scheme = "https"
	}
	resp, err := client.Get(scheme + "://backend/readyz")
	if errors.Is(err, errCertificateRequested) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check the health of %s: %w", cfg.Listen, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("the service is not ready: " + resp.Status)
	}
	return nil
}

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// buildVersion returns the version that the linker set, else "devel-" and 12 digits of the commit, else "devel".
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
