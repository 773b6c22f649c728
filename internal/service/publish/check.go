package publish

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// check validates the configuration, completes it, and returns the number of planned messages.
func (c *Config) check() (planned uint64, err error) {
	c.Base = strings.TrimRight(c.Base, "/")
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	messages := max(0, math.Ceil(c.For.Seconds()*c.Rate-1e-6)) // .1 × 30 is a little more than 3 in binary
	switch {
	case c.Service == nil:
		return 0, errors.New("no service is described, so nothing can be published: say which one with --service")
	case c.Service.Publish == nil:
		return 0, fmt.Errorf("the description of %s has no publish: add it, or leave the publishing to others with PUBLISH_RATE=0", c.Service.Name)
	case len(c.Topics) == 0 || len(c.Topics) > shard.MaxTopics:
		return 0, fmt.Errorf("there are %d topics to publish to: set TOPICS to 1 to %d", len(c.Topics), shard.MaxTopics)
	case !(c.Rate > 0 && c.Rate <= shard.MaxRate):
		return 0, fmt.Errorf("%g messages per second cannot be published: set PUBLISH_RATE to more than 0 and at most %d", c.Rate, shard.MaxRate)
	case !(messages >= 1 && messages <= shard.MaxPublished):
		return 0, fmt.Errorf("%g messages per second for %s are %.0f messages, and a run can have 1 to %d: set a lower PUBLISH_RATE or a shorter run",
			c.Rate, c.For, messages, shard.MaxPublished)
	}
	for k, topic := range c.Topics {
		if err := c.checkURL(topic, c.Run(k)); err != nil {
			return 0, err
		}
	}
	return uint64(messages), nil
}

// checkURL refuses a URL that no request can be sent to.
func (c *Config) checkURL(topic, run string) error {
	text := string(c.Service.Publish.URL.Append(nil, &service.Values{Base: c.Base, Topic: topic, Run: run, Token: c.Token, Seq: 1}))
	display := text
	if c.Token != "" {
		display = strings.ReplaceAll(text, c.Token, "…")
	}
	u, err := url.Parse(text)
	switch at := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }); {
	case at >= 0:
		return fmt.Errorf("publish.url is %.200q for the topic %s: a URL has no spaces and only characters of ASCII, correct the URL of the service", display, topic)
	case err != nil:
		return fmt.Errorf("publish.url is %.200q for the topic %s, which is not a URL (%w): correct it, or the URL of the service", display, topic, reason(err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("publish.url is %.200q for the topic %s: it must begin with http:// or https:// and a host", display, topic)
	case u.Fragment != "":
		return fmt.Errorf("publish.url is %.200q for the topic %s: a URL of a request has no fragment (#)", display, topic)
	}
	return nil
}

// reason returns the error of url.Parse without the URL, which may contain a token.
func reason(err error) error {
	var bad *url.Error
	if errors.As(err, &bad) {
		return bad.Err
	}
	return err
}
