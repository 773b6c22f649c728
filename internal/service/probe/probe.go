// Package probe examines an SSE service with a few streams.
//
// [Run] returns the description of the service: a module like the modules in load-tests/services/. Comments in the
// module state the evidence for each field, and the fields that were not found. [Idle] reports the silence after which
// streams are closed.
package probe

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// A Config is the configuration of a probe. URLs, headers and bodies may contain the placeholders of a description.
type Config struct {
	URL           string  // URL of a stream
	Connect       Request // the other parts of the request that opens a stream
	SecondRequest Request // the second request that a stream needs, if not empty
	Publish       Request // the request that publishes a message, if not empty
	Topic         string  // topic in the URLs, which {topic} replaces; "" means soak-probe
	Name          string  // name of the description

	Streams int           // number of streams; Run opens more, and Idle may open a different number
	Length  time.Duration // length of the probe
	Pace    time.Duration // time between two published messages, and the unit of other waits; 0 means 1 s

	SubscribeToken, PublishToken string
	FollowRedirects              bool   // follow redirects to other origins
	CA                           string // path of a file with additional trusted certificates
	Insecure                     bool   // accept invalid certificates

	Progress   func(sentence string) // may be nil
	UsageError func(err error) error // wraps an error of invalid usage; may be nil

	// Dial opens a connection. nil means the dialer of package net.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Limits of Config.Streams and Config.Length, which the caller of Run or Idle checks. The maxima keep the load of a
// probe low. For Idle, LongestIdle replaces Longest.
const (
	MaxStreams = 10
	Shortest   = 20 * time.Second
	Longest    = 10 * time.Minute
)

const requestTimeout = 10 * time.Second

const defaultTopic = "soak-probe"

// A Result is the outcome of a probe.
type Result struct {
	Module    string   // the description, as a JavaScript module
	Missing   []string // sentences about facts that were not found, with the remedy
	Publishes bool     // the description has publish
	Topics    bool     // the requests have {topic}
	Checked   bool     // a run with the description checks messages
	Finite    bool     // responses end with a terminal event, so the suite is finite
	Variables []string // variables that a run needs for the tokens in the requests, and that have other values or none
}

// Run probes a service and describes it. The probe ends when Length has passed, when ctx ends, or when all responses
// have ended with a terminal event.
func Run(ctx context.Context, c Config) (Result, error) {
	a, err := c.prepare()
	if err != nil {
		return Result{}, err
	}
	progress := c.Progress
	c.Progress = func(sentence string) { progress(a.withoutTokens(sentence)) }
	s := newSession(ctx, c, a)
	if err := s.observe(ctx); err != nil {
		// Package net/http quotes a malformed response, which may contain a token.
		return Result{}, secret.HideInError(err, a.subscribeToken, a.publishToken)
	}
	return s.describe()
}

func (c *Config) prepare() (*requests, error) {
	if c.Pace == 0 {
		c.Pace = time.Second
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	if c.UsageError == nil {
		c.UsageError = func(err error) error { return err }
	}
	if err := proxy.Trust(c.CA, c.Insecure); err != nil {
		return nil, c.UsageError(err)
	}
	a, err := readRequests(c)
	if err != nil {
		return nil, c.UsageError(err)
	}
	if c.Topic == "" {
		c.Topic = defaultTopic
	}
	c.reportProxy()
	return a, nil
}

func (c *Config) client(timeout time.Duration) *stream.Client {
	return &stream.Client{Timeout: timeout, Dial: c.Dial, HTTPVersion: os.Getenv("HTTP_VERSION"), FollowRedirects: c.FollowRedirects}
}

// reportProxy reports a proxy between the probe and the service as progress, because it may affect the results.
func (c *Config) reportProxy() {
	if p, err := proxy.FromEnvironmentTo(c.URL); err == nil && p != nil {
		c.Progress(fmt.Sprintf("through the proxy %s (%s)", p, p.Variable()))
	}
}

// describe returns the description of the service. It hides tokens in comments, because comments quote the service,
// which may have repeated a token.
func (s *session) describe() (Result, error) {
	f := conclude(s)
	if f.finite == nil && s.requests.uses("{prompt}") {
		return Result{}, s.noTerminalEvent()
	}
	description := f.description()
	if _, err := service.Parse(toJSON(description)); err != nil {
		return Result{}, fmt.Errorf("the probe wrote an invalid description: %s; report this as a bug", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	head := f.header()
	for i, sentence := range head {
		head[i] = s.requests.withoutTokens(sentence)
	}
	for i, sentence := range f.missing {
		f.missing[i] = s.requests.withoutTokens(sentence)
	}
	s.requests.hideTokens(description)
	return Result{
		Module: toModule(description, head), Missing: f.missing,
		Publishes: description.value("publish") != nil, Topics: s.requests.uses("{topic}"), Checked: description.value("message") != "unchecked",
		Finite: f.finite != nil, Variables: s.requests.missingVariables,
	}, nil
}
