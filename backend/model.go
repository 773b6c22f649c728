package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/sse-soak/sse-soak/internal/model"
)

// A modelConfig holds the settings of `backend model`.
type modelConfig struct {
	model.Config
	Listen     string
	SocketMode os.FileMode
	LogLevel   slog.Level
}

func (c *modelConfig) settings() *pflag.FlagSet {
	fs, add := newSettings("backend model")
	add("listen", "127.0.0.1:8090", "HOST:PORT or unix:/path", "address of the server", parseText(&c.Listen, checkListen))
	add("socket-mode", "0660", "octal", "permissions of the unix socket", fileMode(&c.SocketMode))
	add("chunks", "40", "chunks", "number of chunks of a response", parseInt(&c.Chunks, 1, model.MaxChunks))
	add("size", "0", "bytes", "size up to which chunks are padded with whole words; 0: no padding",
		parseInt(&c.Size, 0, model.MaxSize))
	add("delay", "10ms", "seconds or 10ms", "time between two chunks", duration(&c.Delay, 0, model.MaxWait))
	add("ttft", "50ms", "seconds or 50ms", "time before the first chunk", duration(&c.TTFT, 0, model.MaxWait))
	add("fault", "", "NAME@K:SHARE", "fault of a share of the requests (see below); repeatable", c.addFaults)
	add("seed", "1", "number", "seed that, with the id of a request, decides whether the request has a fault", parseUint(&c.Seed))
	add("retry-after", "1", "seconds", "Retry-After header of responses with status 429", duration(&c.RetryAfter, 0, model.MaxWait))
	add("ledger-keep", "1000000", "requests", "maximum number of requests in the ledger; the oldest are removed first", parseInt(&c.Keep, 1, 1<<26))
	add("drain-timeout", "10", "seconds or 500ms", "maximum time for open responses to end after SIGTERM or SIGINT",
		duration(&c.DrainWait, 0, time.Hour))
	add("log-level", "info", "debug|info|warn|error", "minimum level of the log on stderr", func(v string) error {
		return remedy(c.LogLevel.UnmarshalText([]byte(v)), "choose debug, info, warn or error")
	})
	return fs
}

func (c *modelConfig) addFaults(text string) error {
	shares, err := model.AddShares(c.Shares, text)
	if err == nil {
		c.Shares = shares
	}
	return err
}

// modelVariable returns the variable of a flag. The prefix distinguishes it from a variable of the soak command, such
// as SEED.
func modelVariable(flag string) string { return "MODEL_" + variable(flag) }

func parseUint(value *uint64) func(string) error {
	return func(v string) (err error) {
		*value, err = strconv.ParseUint(v, 10, 64)
		return remedy(err, fmt.Sprintf("write a whole number from 0 to %d", uint64(math.MaxUint64)))
	}
}

func runModel(
	args []string, env func(string) (string, bool), signals <-chan os.Signal, stdout, stderr io.Writer,
) int {
	var c modelConfig
	verb, err := parseSettings(c.settings(), modelVariable, args, env)
	if err != nil {
		fmt.Fprintf(stderr, "backend model: %v\n", err)
		return exitUsage
	}
	switch verb {
	case "help":
		fmt.Fprint(stdout, "backend model serves the APIs of a language model, with numbered chunks, faults and a ledger.\n\n"+
			"Usage: backend model [flags]     each flag is also an environment variable; a flag takes precedence\n\n"+
			settingsText(new(modelConfig).settings(), modelVariable)+
			"  --healthcheck      check that the server at MODEL_LISTEN is ready; exit code 0 on success, 1 on failure\n\n"+model.Help)
		return exitOK
	case "version":
		fmt.Fprintln(stdout, "backend", buildVersion())
		return exitOK
	case "healthcheck":
		err = checkHealth(&Config{Listen: c.Listen})
	default:
		err = serveModel(&c, signals, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "backend model: %v\n", err)
		return exitError
	}
	return exitOK
}

// serveModel serves until a signal, and then drains. A second signal ends the drain with an error.
func serveModel(c *modelConfig, signals <-chan os.Signal, stderr io.Writer) error {
	c.Log = slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	l, err := listen(c.Listen, c.SocketMode)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Listen, err)
	}
	c.Log.Info("listening", "addr", l.Addr().String(), "version", buildVersion(), "faults", len(c.Shares))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	result := make(chan error, 1)
	go func() { result <- model.New(c.Config).Serve(ctx, l) }()
	select {
	case err := <-result:
		return err
	case <-signals:
		stop()
	}
	select {
	case err := <-result:
		return err
	case <-signals:
		return errors.New("stop: a second signal arrived, so open responses were truncated")
	}
}
