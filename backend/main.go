// Command backend is the reference service that the soak command tests. It keeps many idle event streams open, at a
// cost of one file descriptor and 1 to 2 KiB each. It sends each stream a numbered noop at a fixed interval,
// and keeps a ledger of the sent noops and messages.
//
// net/http parses requests. The backend takes the connection of an accepted stream from net/http as a bare descriptor
// (connect.go). From then on one goroutine, the scheduler (hub.go), owns the descriptor. It shares large batches of
// writes with a few helpers (batch.go). Another goroutine waits in epoll for clients that disconnect (watch_linux.go).
// Streams have no goroutines of their own, except under TLS (tls_writer.go).
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
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
