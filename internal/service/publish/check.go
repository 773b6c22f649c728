package publish

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// check validates the configuration, sets its defaults, and returns the number of planned messages.
func (c *Config) check() (planned uint64, err error) {
	c.Base = strings.TrimRight(c.Base, "/")
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	messages := max(0, math.Ceil(c.For.Seconds()*c.Rate-1e-6)) // in binary, 0.07 × 100 is slightly more than 7
	switch {
	case c.Service == nil:
		return 0, errors.New("publishing needs a service description; set SERVICE")
	case c.Service.Publish == nil:
		return 0, fmt.Errorf("the description of %s has no publish; add it, or set PUBLISH_RATE=0 if another program publishes", c.Service.Name)
	case len(c.Topics) == 0 || len(c.Topics) > shard.MaxTopics:
		return 0, fmt.Errorf("TOPICS must be from 1 to %d in a run that publishes, got %d", shard.MaxTopics, len(c.Topics))
	case !(c.Rate > 0 && c.Rate <= shard.MaxRate):
		return 0, fmt.Errorf("PUBLISH_RATE must be above 0 and at most %d messages per second, got %g", shard.MaxRate, c.Rate)
	case !(messages >= 1 && messages <= shard.MaxPublished):
		return 0, fmt.Errorf("a run must publish from 1 to %d messages, got %.0f (%g per second for %s); change PUBLISH_RATE or SECONDS",
			shard.MaxPublished, messages, c.Rate, c.For)
	}
	for k, topic := range c.Topics {
		if err := c.checkURL(topic, c.Run(k)); err != nil {
			return 0, err
		}
	}
	return uint64(messages), nil
}

func (c *Config) checkURL(topic, run string) error {
	text := string(c.Service.Publish.URL.Append(nil, &service.Values{Base: c.Base, Topic: topic, Run: run, Token: c.Token, Seq: 1}))
	display := secret.Hide(text, c.Token)
	u, err := url.Parse(text)
	switch at := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }); {
	case at >= 0:
		return fmt.Errorf("publish.url for the topic %s must have only printable ASCII characters and no spaces, got %.200q; correct publish.url, or the URL of the service", topic, display)
	case err != nil:
		return fmt.Errorf("publish.url for the topic %s must be a URL (%w), got %.200q; correct publish.url, or the URL of the service", topic, withoutURL(err), display)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("publish.url for the topic %s must begin with http:// or https:// and a host, got %.200q", topic, display)
	case u.Fragment != "":
		return fmt.Errorf("publish.url for the topic %s must have no fragment (#), got %.200q", topic, display)
	}
	return nil
}

// withoutURL removes the URL, which may contain a token, from an error of url.Parse.
func withoutURL(err error) error {
	var bad *url.Error
	if errors.As(err, &bad) {
		return bad.Err
	}
	return err
}
