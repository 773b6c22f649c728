package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/trial"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
)

// tryService makes a trial before the load, and before the run has a folder. If the description is a module, it tries
// the description with one stream, or one response that ends by itself, of the first service that this machine uses.
// With the noop protocol it opens one stream of each service that this machine uses. A run on Kubernetes has no trial,
// because this machine may be unable to reach the service. There is no trial either without a URL, after an attach, or
// in a suite that uses neither streams nor a module.
func (s *session) tryService(ctx context.Context) error {
	if s.On != "local" || !s.runStart.IsZero() || s.Plan.BackendURL == "" || !s.isModule && !s.Suite.Target.Streams {
		return nil
	}
	subject := "stream"
	if s.Suite.Target.Kind == suite.Model {
		subject = "response"
	}
	fmt.Fprintf(s.Stdout, "trying one %s of %s\n", subject, s.Plan.BackendURL)
	if !s.isModule {
		return s.tryNoop(ctx)
	}
	targets, err := target.Remotes(s.Plan.BackendURLs(), os.Getenv("BACKEND_TOKEN"), s.certificates)
	if err != nil {
		return err
	}
	if err := targets.Probe(ctx, 0); err != nil {
		return err
	}
	desc := *s.desc
	if !s.Plan.Published() {
		desc.Publish = nil
	}
	if config := s.trialOf(&desc); desc.Finite != nil {
		config.Patience, config.Prompt = s.answerTimeout(), s.firstPrompt()
		settings := plan.Plan{AcceptEncoding: s.setting("ACCEPT_ENCODING", "")} // the suite has its own settings
		config.AcceptEncoding, config.HTTPVersion = settings.AcceptHeader(), s.setting("HTTP_VERSION", "")
		err = tryAnswer(ctx, config)
	} else {
		err = trial.Run(ctx, config)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the description of %s does not match the service at %s: %w", s.Plan.ServiceName(), s.Plan.BackendURL, err)
	}
	return err
}

// Try checks the settings and opens streams of the service, as a run does before its load. It publishes nothing.
func Try(ctx context.Context, c Config) error {
	s := newSession(c)
	if err := s.complete(time.Now()); err != nil {
		return UsageError{err}
	}
	if !s.isModule {
		if err := s.tryNoop(ctx); err != nil {
			return err
		}
		targets, err := target.Remotes(s.Plan.BackendURLs(), os.Getenv("BACKEND_TOKEN"), "")
		if err != nil {
			return err
		}
		return targets.Probe(ctx, s.interval)
	}
	if err := s.findScript(); err != nil {
		return err
	}
	if err := s.inspect(ctx); err != nil {
		return err
	}
	return trial.Connect(ctx, s.trialOf(s.desc))
}

// tryAnswer requests a response that ends by itself, up to three times, because the service may fail some requests.
func tryAnswer(ctx context.Context, c trial.Config) (err error) {
	const attempts = 3
	c.ID = c.Marker + "-trial"
	if c.Prompt = strings.ReplaceAll(c.Prompt, "{id}", c.ID); c.Prompt == "" {
		c.Prompt = "soak id=" + c.ID + " chunks=3 fault=none\nSay hello." // the first line is for the numbered model
	}
	notice := time.AfterFunc(3*time.Second, func() {
		printMessage(fmt.Sprintf("waiting for the end of the response, for up to %s per attempt", c.Patience))
	})
	defer notice.Stop()
	for range attempts {
		if err = trial.Answer(ctx, c); err == nil || ctx.Err() != nil || errors.Is(err, trial.ErrNoResponse) {
			break
		}
	}
	return err
}

func (s *session) firstPrompt() (prompt string) {
	file := s.setting("PROMPTS", "")
	if file == "" {
		return ""
	}
	text, err := os.ReadFile(file) //nolint:gosec // G304: the user's file
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if json.Unmarshal([]byte(line), &prompt) != nil { // the prompt is another JSON value
		return strings.TrimSpace(line)
	}
	return prompt
}

// answerTimeout returns how long a trial waits for the headers of a response, and for the end of the response.
func (s *session) answerTimeout() time.Duration {
	if first, err := plan.ParseNumber("FIRST_TIMEOUT", s.setting("FIRST_TIMEOUT", "")); err == nil && first > 0 {
		return min(time.Minute, time.Duration(first*float64(time.Second)))
	}
	return time.Minute
}

// trialOf returns the configuration of a trial with the first topic of the run. No stream of the run has the trial's
// id.
func (s *session) trialOf(desc *service.Service) trial.Config {
	p := &s.Plan
	return trial.Config{
		Service: desc, Base: p.BackendOf(max(s.runnerNumber, 1)), Topic: p.TopicName(0), ID: p.Prefix + "trial", Marker: p.Marker, Padding: p.Padding(),
		SubscribeToken: os.Getenv(desc.Variable()), CustomToken: s.customToken, PublishToken: os.Getenv("PUBLISH_TOKEN"),
		AcceptEncoding: p.AcceptHeader(), HTTPVersion: p.HTTPVersion, FollowRedirects: p.FollowRedirects, Note: s.warn,
	}
}

// The headers of a noop stream must arrive within noopTimeout. A service may send them with its first noop. If noops
// are over 5 s apart, a response to a request for /healthz within healthTimeout is therefore enough.
const (
	noopTimeout   = 6 * time.Second
	healthTimeout = 3 * time.Second
)

// tryNoop opens one stream of each target that the runners on this machine use, with the noop protocol. It does not
// wait for a noop: missing noops are a failure of the service.
func (s *session) tryNoop(ctx context.Context) error {
	urls := s.Plan.BackendURLs()
	if s.runnerNumber > 0 {
		urls = []string{s.Plan.BackendOf(s.runnerNumber)}
	}
	for _, url := range urls[:min(len(urls), s.Plan.Runners)] {
		if err := s.tryNoopAt(ctx, url); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) tryNoopAt(ctx context.Context, url string) error {
	c := s.trialOf(s.desc)
	c.Base = url
	c.ID = "trial-" + shard.NewID() // the backend's ledger of the run would include an id with the run's prefix
	if strings.HasPrefix(c.ID, s.Plan.Prefix) {
		c.ID = "_" + c.ID
	}
	c.Patience = noopTimeout
	err := trial.Connect(ctx, c)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if late := errors.Is(err, trial.ErrNoResponse) && s.interval+time.Second > noopTimeout; late {
		probeCtx, stop := context.WithTimeout(ctx, healthTimeout)
		defer stop()
		if target.Remote(url, os.Getenv("BACKEND_TOKEN")).Probe(probeCtx, 0) == nil {
			s.warn(fmt.Sprintf("no headers of a stream arrived within %s, so the trial was inconclusive: a service may send them with its first noop", noopTimeout))
			return nil
		}
	}
	var m *trial.Mismatch
	if errors.As(err, &m) {
		err = m.Err // without the name of the field, because the user wrote no description
	}
	return fmt.Errorf("%w; without --service, soak expects the %s protocol (docs/services.md): for any other service, run `soak init %s` with the path of the event stream appended to this URL",
		err, plan.NoopService, url)
}

func (s *session) reportWait(activity string, f func()) {
	_ = s.withProgressReports(activity, func() error { f(); return nil })
}

// withProgressReports runs f, and prints the activity every 3 s. The Kubernetes driver prints its own progress.
func (s *session) withProgressReports(activity string, f func() error) error {
	const interval = 3 * time.Second
	if s.On != "local" {
		return f()
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for waited := interval; ; waited += interval {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			printMessage(fmt.Sprintf("%s: %s", activity, waited))
		}
	}
}
