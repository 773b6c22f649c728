// Package probe looks at an SSE service for a minute, with a few streams, and writes a description of it: a module
// as in load-tests/services/, in which a comment says what was seen of each part, and what could not be found out.
package probe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/stream"
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
	FollowRedirects              bool // to other origins

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

// Run probes a service until Length has passed or ctx ends, and returns the module that describes it.
func Run(ctx context.Context, c Config) (module string, err error) {
	a, err := c.prepare()
	if err != nil {
		return "", err
	}
	s := newSession(c, a)
	if err := s.observe(c.network(ctx)); err != nil {
		return "", err
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
func (s *session) describe() (string, error) {
	f := look(s)
	description := f.description()
	if _, err := service.Parse(asJSON(description)); err != nil {
		return "", fmt.Errorf("the probe made a description that is none, which is a bug in it: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	head := f.head()
	for i, sentence := range head {
		head[i] = s.asked.withoutTokens(sentence)
	}
	s.asked.hideTokens(description)
	return asModule(description, head), nil
}
