// Command bench contains the clients and the service that the benchmarks of this folder start as processes. It also
// writes the output of the benchmarks to docs/results/bench.md. `make bench` runs the benchmarks.
package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
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

// http2Options has the options of a noop service over HTTP/2 and HTTP/1.1.
type http2Options struct {
	Listen   string  // address to listen on; "": 127.0.0.1:8090
	Certs    string  // folder of `make certs` for TLS; "": no TLS
	Interval float64 // seconds between two noops of a stream; 0: 15
	Phase    string  // phase of noops: random, or wall for the same time on all streams; "": random
	Streams  int     // maximum number of streams per connection; 0: 250
}

func serveHTTP2(ctx context.Context, o http2Options) (struct{}, error) {
	interval := time.Duration(cmp.Or(o.Interval, 15) * float64(time.Second))
	spec := fakeservice.NewSpec(interval, cmp.Or(o.Phase, fakeservice.PhaseRandom), cmp.Or(o.Streams, 250))
	if o.Certs != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(o.Certs, "server/server.pem"), filepath.Join(o.Certs, "server/server-key.pem"))
		if err != nil {
			return struct{}{}, fmt.Errorf("read the certificate: %w; run `make certs`", err)
		}
		spec.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(o.Listen, "127.0.0.1:8090"))
	if err != nil {
		return struct{}{}, err
	}
	service := fakeservice.StartService(spec, fakeservice.Strike{}, listener)
	<-ctx.Done()
	service.Stop()
	return struct{}{}, nil
}

// responsesOptions has the options of a Go client that uses net/http and a scanner. The client reads responses of the
// numbered model, and checks only whether they have their terminal event.
type responsesOptions struct {
	URL         string
	Concurrency int
	Duration    time.Duration
}

// A responsesResult has the number of complete responses, and the CPU time of the process.
type responsesResult struct {
	Complete   int64
	CPUSeconds float64
}

// responses sends requests for a duration. A worker stops at its first error; one of these errors is returned.
func responses(ctx context.Context, o responsesOptions) (r responsesResult, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: o.Concurrency}
	client, end := &http.Client{Transport: transport}, time.Now().Add(o.Duration)
	var complete, number atomic.Int64
	errs := make(chan error, o.Concurrency)
	var workers sync.WaitGroup
	for range o.Concurrency {
		workers.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				done, err := readResponse(ctx, client, o.URL, number.Add(1))
				if err != nil {
					errs <- err
					return
				}
				if done {
					complete.Add(1)
				}
			}
		})
	}
	workers.Wait()
	transport.CloseIdleConnections()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return r, fmt.Errorf("read the CPU of this process: %w", err)
	}
	select {
	case err = <-errs:
	default:
	}
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return responsesResult{complete.Load(), cpu.Seconds()}, err
}

func readResponse(ctx context.Context, client *http.Client, url string, n int64) (done bool, err error) {
	body := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":"soak id=b-%d"}]}`, n)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return false, err
	}
	resp, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		done = done || lines.Text() == "data: [DONE]"
	}
	return done, lines.Err()
}
