package plan

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// NoopService is the name of the default service. A plan stores it as "", so plan.json does not name it.
const NoopService = "noop"

// serviceName matches the name of a description in load-tests/services.
var serviceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// IsServiceFile reports whether the value of SERVICE is the path of a module. Otherwise the value is a name.
func IsServiceFile(text string) bool {
	return strings.HasSuffix(text, ".js") || strings.ContainsRune(text, filepath.Separator)
}

// ServiceName returns the name of the service for display: without the folder and the extension of a user's module.
func (p *Plan) ServiceName() string {
	return strings.TrimSuffix(filepath.Base(cmp.Or(p.Service, NoopService)), ".js")
}

// Published reports whether the run publishes the messages that its streams should receive.
func (p *Plan) Published() bool { return p.Topics > 0 && p.PublishRate > 0 }

// PublishInterval returns the seconds between two messages of a topic. It is valid only if Published returns true.
func (p *Plan) PublishInterval() float64 { return float64(p.Topics) / p.PublishRate }

// TopicCount returns the number of topics that the streams subscribe to.
func (p *Plan) TopicCount() int { return max(p.Topics, len(p.TopicNames), 1) }

// Topic returns the index of the topic of stream n. Both count from 0.
func (p *Plan) Topic(n int) int { return n % p.TopicCount() }

// TopicName returns the name of topic k. A generated name contains the prefix, so that runs with different prefixes use
// different topics.
func (p *Plan) TopicName(k int) string {
	if k < len(p.TopicNames) {
		return p.TopicNames[k]
	}
	return p.Prefix + "topic-" + strconv.Itoa(k)
}

// maxTopicName is the maximum length of the name of a topic in bytes. Shards and findings contain the name.
const maxTopicName = 1024

func (p *Plan) checkTopicNames() error {
	names := slices.Compact(slices.Sorted(slices.Values(p.TopicNames)))
	for _, name := range names {
		if len(name) > maxTopicName {
			return fmt.Errorf("TOPIC must have names of at most %d bytes, got one of %d", maxTopicName, len(name))
		}
	}
	switch n := len(p.TopicNames); {
	case len(names) < n:
		return fmt.Errorf("TOPIC must have unique names, got %s", strings.Join(p.TopicNames, ", "))
	case n > 0 && p.Topics > 0 && p.Topics != n:
		return fmt.Errorf("TOPICS must be the number of topics that TOPIC names, %d, got %d; remove TOPICS", n, p.Topics)
	}
	return nil
}

// Padding returns the filler text of each published message: MESSAGE_KB × 1024 bytes; "" for 0.
func (p *Plan) Padding() string { return strings.Repeat("x", p.MessageKB<<10) }

func (p *Plan) checkRate() error {
	if p.Published() && p.PublishInterval() < shortestInterval {
		return fmt.Errorf("PUBLISH_RATE must be at most %v messages per second for each topic, got %v with TOPICS %d; raise TOPICS, or lower PUBLISH_RATE",
			1/shortestInterval, p.PublishRate, p.Topics)
	}
	return nil
}

// MarkerOf returns the value of {run} in the messages of topic k. It contains k, so that a stream does not count
// messages of another topic as its own.
func (p *Plan) MarkerOf(k int) string { return p.Marker + "." + strconv.Itoa(k) }

func (p *Plan) checkService() error {
	if err := p.checkTopicNames(); err != nil {
		return err
	}
	holdSeconds := float64(p.Seconds - DisconnectLead)
	switch {
	case p.Service == "":
		if p.Topics != 0 || p.PublishRate != 0 || len(p.TopicNames) > 0 {
			return fmt.Errorf("TOPIC, TOPICS and PUBLISH_RATE need a service that accepts messages, but %s sends its own; set SERVICE to such a service, or remove these settings", NoopService)
		}
		if p.TokenTTL > 0 {
			return fmt.Errorf("TOKEN_TTL needs a service whose description has token(), but %s has none; set SERVICE to such a service, or remove TOKEN_TTL", NoopService)
		}
		return nil
	case IsServiceFile(p.Service) && (!filepath.IsAbs(p.Service) || !strings.HasSuffix(p.Service, ".js")):
		return fmt.Errorf("SERVICE must be the absolute path of a .js file, or a name in load-tests/services, got %q", p.Service)
	case !IsServiceFile(p.Service) && !serviceName.MatchString(p.Service):
		return fmt.Errorf("SERVICE must be a name in load-tests/services, such as nchan, or the path of a .js file, got %q", p.Service)
	case p.Topics > 0 && p.PublishRate == 0:
		return fmt.Errorf("TOPICS is %d, but PUBLISH_RATE is 0; set PUBLISH_RATE, or remove TOPICS", p.Topics)
	case p.PublishRate > 0 && p.Topics == 0:
		return fmt.Errorf("PUBLISH_RATE is %v, but TOPICS is 0; set TOPICS, or remove PUBLISH_RATE", p.PublishRate)
	case p.Topics > p.Connections:
		return fmt.Errorf("TOPICS must be at most CONNECTIONS, got %d and %d; lower TOPICS or raise CONNECTIONS", p.Topics, p.Connections)
	case p.Published() && len(p.BackendURLs()) > 1:
		return fmt.Errorf("BACKEND_URL must name one service with TOPICS and PUBLISH_RATE, because messages reach only the streams of one service, got %d; name one, or remove TOPICS and PUBLISH_RATE", len(p.BackendURLs()))
	case p.Published() && holdSeconds < 2*p.PublishInterval():
		return fmt.Errorf("a stream must receive at least two messages, got one every %.4g s (TOPICS %d, PUBLISH_RATE %v) for %v s; lower TOPICS, or raise PUBLISH_RATE or SECONDS",
			p.PublishInterval(), p.Topics, p.PublishRate, holdSeconds)
	case holdSeconds < 2*p.NoopInterval:
		return fmt.Errorf("a stream must receive at least two heartbeats, got one every %v s for %v s (SECONDS %d); lengthen the run",
			p.NoopInterval, holdSeconds, p.Seconds)
	}
	return nil
}
