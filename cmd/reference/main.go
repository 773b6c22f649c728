// Command reference runs the reference server of the control group, as `soak control` does. It listens on the address
// in the environment variable LISTEN. compose.yaml runs it from its own image, for runners on other machines.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/control"
)

// healthTimeout is the maximum time until the first byte of a stream. The reference sends that byte at once.
const healthTimeout = 3 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("LISTEN"), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address string, args []string) error {
	switch {
	case len(args) == 0:
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("listen on LISTEN (REFERENCE_LISTEN in .env): %w", err)
		}
		return control.Serve(ctx, listener)
	case slices.Equal(args, []string{"--healthcheck"}):
		return checkHealth(ctx, address)
	}
	return fmt.Errorf("unexpected arguments %q; pass --healthcheck or no arguments", args)
}

// checkHealth returns an error unless the reference at address opens a stream and sends its first byte. It is for the
// image, which has no other program for a health check.
func checkHealth(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil) // #nosec G704 -- its own address
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req) // #nosec G704 -- its own address
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("open a stream of the reference: %s", resp.Status)
	}
	if _, err = io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		return fmt.Errorf("read a stream of the reference: %w", err)
	}
	return nil
}
