// Command reference serves the reference target of the control group at the address LISTEN, as `soak control` does.
// It has its own image for the stack of compose.yaml, for runners on other machines.
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

// healthTimeout is the maximum time until the first event of a stream, which the reference sends at once.
const healthTimeout = 3 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("LISTEN"), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends or, with --healthcheck, checks the reference that does.
func run(ctx context.Context, address string, args []string) error {
	switch {
	case len(args) == 0:
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("LISTEN, which the stack takes from REFERENCE_LISTEN in .env: %w", err)
		}
		return control.Serve(ctx, listener)
	case slices.Equal(args, []string{"--healthcheck"}):
		return checkHealth(ctx, address)
	}
	return fmt.Errorf("unexpected arguments %q: there is --healthcheck, and the variable LISTEN", args)
}

// checkHealth checks the health of a container whose image has no other program.
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
		return fmt.Errorf("the reference did not open a stream: %s", resp.Status)
	}
	if _, err = io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		return fmt.Errorf("the reference sends nothing: %w", err)
	}
	return nil
}
