// Command bench contains the clients and the service that the benchmarks of this folder start as processes. It also
// writes the output of the benchmarks to docs/results/bench.md. `make bench` runs the benchmarks.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// commands contains the programs of bench by name. Each accepts options as JSON, and returns a result for output as
// JSON.
var commands = map[string]func(context.Context, []byte) (any, error){
	"hold": command(hold), "churn": command(churn), "handshakes": command(handshakes), "http2-service": command(serveHTTP2),
	"responses": command(responses),
}

func command[O, R any](run func(context.Context, O) (R, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, options []byte) (any, error) {
		var o O
		if err := json.Unmarshal(options, &o); err != nil {
			return nil, fmt.Errorf("read the options %s: %w", options, err)
		}
		return run(ctx, o)
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "table" {
		return writeTable(os.Stdin, args[1])
	}
	if len(args) == 0 || commands[args[0]] == nil || len(args) > 2 {
		return fmt.Errorf("usage: bench table FILE (without .json and .md) <OUTPUT, or bench %s [OPTIONS as JSON]", strings.Join(slices.Sorted(maps.Keys(commands)), "|"))
	}
	options := []byte("{}")
	if len(args) == 2 {
		options = []byte(args[1])
	}
	result, err := commands[args[0]](ctx, options)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
