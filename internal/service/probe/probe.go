// Package probe examines an SSE service for a minute, with a few streams, and writes a description of it: a module as
// in load-tests/services/, with the evidence for each part as comments, and the parts that could not be found.
package probe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// Config is what a probe needs. URLs, headers and bodies may have the placeholders of a description.
type Config struct {
	URL     string  // of a stream
	Connect Request // the rest of that request
	Then    Request // the second request that a stream needs; empty: none
	Publish Request // publishes a message; empty: the probe publishes nothing
	Topic   string  // the text in URLs that is a topic; {topic} stands for it as well
	Name    string  // of the description

	Streams int
	Length  time.Duration
	Pace    time.Duration // between two messages that are published; 0: 1 s

	SubscribeToken, PublishToken string
	FollowRedirects              bool   // to other origins
	CA                           string // file of certificates that are trusted, too
	Insecure                     bool   // certificates are not verified

	Progress func(sentence string) // may be nil
	Wrong    func(err error) error // makes wrong usage of an error; may be nil

	ages []time.Duration // of Idle, in tests
}

// The probe is no load: these bound it.
const (
	MostStreams = 10
	Shortest    = 20 * time.Second
	Longest     = 10 * time.Minute
)

// patience is how long a request may take.
const patience = 10 * time.Second

// usualTopic is the topic where none is given.
const usualTopic = "soak-probe"

// A Result is the outcome of a probe.
type Result struct {
	Module    string   // the description, as a JavaScript module
	Missing   []string // what was not found, in sentences that name the remedy
	Publishes bool     // the description has publish
	Topics    bool     // its requests name {topic}
	Checked   bool     // a run with it checks messages
	Finite    bool     // responses end by themselves, so that `soak run finite` runs it
}

// Run probes a service until Length has passed or ctx ends, and describes it.
func Run(ctx context.Context, c Config) (Result, error) {
	a, err := c.prepare()
	if err != nil {
		return Result{}, err
	}
	progress := c.Progress
	c.Progress = func(sentence string) { progress(a.withoutTokens(sentence)) }
	s := newSession(c, a)
	if err := s.observe(c.network(ctx)); err != nil {
		return Result{}, secret.HideInError(err, a.subscribe, a.publishing) // Go quotes a malformed response
	}
	return s.describe()
}

// prepare fills in what is left out, and reads what was asked.
func (c *Config) prepare() (*asked, error) {
	if c.Pace == 0 {
		c.Pace = time.Second
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	if c.Wrong == nil {
		c.Wrong = func(err error) error { return err }
	}
	if err := proxy.Trust(c.CA, c.Insecure); err != nil {
		return nil, c.Wrong(err)
	}
	a, err := understand(c)
	if err != nil {
		return nil, c.Wrong(err)
	}
	if c.Topic == "" {
		c.Topic = usualTopic
	}
	c.sayProxy()
	return a, nil
}

// network is a context whose requests follow the redirects that the user allows.
func (c *Config) network(ctx context.Context) context.Context {
	if c.FollowRedirects {
		return stream.FollowingRedirects(ctx)
	}
	return ctx
}

// sayProxy tells of a proxy on the way: what is seen of the service may be its doing.
func (c *Config) sayProxy() {
	if p, err := proxy.FromEnvironmentTo(c.URL); err == nil && p != nil {
		c.Progress(fmt.Sprintf("through the proxy %s (%s)", p, p.Variable()))
	}
}

// describe writes the description. Its comments quote the service, which may have repeated a token.
func (s *session) describe() (Result, error) {
	f := look(s)
	if f.finite == nil && s.asked.names("{prompt}") {
		return Result{}, fmt.Errorf("{prompt} is of requests whose responses end by themselves, and not each of %s ended within %s with an event that only its end has; probe for longer (--seconds)",
			format.Count(s.opened, "response"), inSeconds(time.Since(s.began)))
	}
	description := f.description()
	if _, err := service.Parse(asJSON(description)); err != nil {
		return Result{}, fmt.Errorf("the probe made a description that is none, which is a bug in it: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	head := f.head()
	for i, sentence := range head {
		head[i] = s.asked.withoutTokens(sentence)
	}
	for i, sentence := range f.missing {
		f.missing[i] = s.asked.withoutTokens(sentence)
	}
	s.asked.hideTokens(description)
	return Result{
		Module: asModule(description, head), Missing: f.missing,
		Publishes: description.has("publish"), Topics: s.asked.names("{topic}"), Checked: description.value("message") != "unchecked",
		Finite: f.finite != nil,
	}, nil
}
