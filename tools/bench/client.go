package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/process"
)

// A client is a process that holds connections: a runner or raw clients.
type client interface {
	pids() []int
	// done is closed when it has ended, which it should not while it is measured.
	done() <-chan struct{}
	// has waits until it received n noops, as far as it tells before its end.
	has(ctx context.Context, n uint64) error
	// end ends it in order and says what it received and missed.
	end(ctx context.Context) (received, missed uint64, err error)
	// kill ends it at once; after end it does nothing.
	kill()
}

// rawClients share the connections among as many processes as descriptors ask for, each with
// a loopback address of its own so that ports do not run out either.
type rawClients struct {
	children []*process.Process
	logs     []string
	over     chan struct{}
}

func (o *options) startRaw(s service, connections int, stamps bool) (client, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &rawClients{over: make(chan struct{})}
	for left := connections; left > 0; left -= o.size.rawPerProcess {
		dir, err := o.folder("raw")
		if err == nil {
			log := filepath.Join(dir, "out.json")
			args := []string{
				"raw-client", "--address", u.Host, "--connections", strconv.Itoa(min(left, o.size.rawPerProcess)),
				"--prefix", o.prefix(), "--source", fmt.Sprintf("127.0.0.%d", 2+len(c.children)),
				fmt.Sprintf("--stamps=%t", stamps),
			}
			var p *process.Process
			p, err = process.Start(process.Spec{Name: "raw client", Path: self, Args: args, Env: os.Environ(), Log: log, Orphan: syscall.SIGKILL})
			if err == nil {
				c.children, c.logs = append(c.children, p), append(c.logs, log)
			}
		}
		if err != nil {
			c.watch()
			c.kill()
			return nil, err
		}
	}
	c.watch()
	return c, nil
}

func (c *rawClients) watch() {
	go func() {
		for _, p := range c.children {
			<-p.Done()
		}
		close(c.over)
	}()
}

func (c *rawClients) pids() (out []int) {
	for _, p := range c.children {
		out = append(out, p.PID())
	}
	return out
}

func (c *rawClients) done() <-chan struct{} { return c.over }

// has has nothing to wait for: raw clients tell at their end.
func (c *rawClients) has(context.Context, uint64) error { return nil }

func (c *rawClients) kill() {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, p := range c.children {
		p.Stop(gone, syscall.SIGKILL, time.Second)
	}
	<-c.over
}

func (c *rawClients) end(ctx context.Context) (received, missed uint64, err error) {
	results, err := c.results(ctx)
	for _, r := range results {
		received += r.Received
		missed += r.Missed
		if r.Failed > 0 {
			err = errors.Join(err, fmt.Errorf("%d connections of the raw client failed: %v", r.Failed, r.Errors))
		}
	}
	return received, missed, err
}

func (c *rawClients) results(ctx context.Context) (out []rawResult, err error) {
	for _, p := range c.children { // all at once, within the pause after a round of noops
		p.Signal(syscall.SIGTERM)
	}
	for i, p := range c.children {
		p.Stop(ctx, syscall.SIGTERM, 20*time.Second)
		text, err := os.ReadFile(c.logs[i])
		var r rawResult
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("read what the raw client counted: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}
