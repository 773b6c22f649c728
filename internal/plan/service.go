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

// NoopService is what a soak holds that names no service. A plan has it as "", so that the files of such a
// soak are what they were before there were others.
const NoopService = "noop"

var serviceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// IsServiceFile reports whether the value of SERVICE is the path of a module, and not a name.
func IsServiceFile(text string) bool {
	return strings.HasSuffix(text, ".js") || strings.ContainsRune(text, filepath.Separator)
}

// ServiceName returns the name of the service for display: without the folder of a user's module.
func (p *Plan) ServiceName() string {
	return strings.TrimSuffix(filepath.Base(cmp.Or(p.Service, NoopService)), ".js")
}

// Published reports whether the run publishes the messages that its streams should receive.
func (p *Plan) Published() bool { return p.Topics > 0 && p.PublishRate > 0 }

// PublishInterval returns the seconds between the messages of one topic, and so of one stream.
func (p *Plan) PublishInterval() float64 { return float64(p.Topics) / p.PublishRate }

// TopicCount returns the number of topics that the streams subscribe to.
func (p *Plan) TopicCount() int { return max(p.Topics, len(p.TopicNames), 1) }

// Topic returns the topic of the nth stream. Both count from 0.
func (p *Plan) Topic(n int) int { return n % p.TopicCount() }

// TopicName returns the name of the kth topic. A generated name has the prefix, so that runs with different prefixes use different
// topics.
func (p *Plan) TopicName(k int) string {
	if k < len(p.TopicNames) {
		return p.TopicNames[k]
	}
	return p.Prefix + "topic-" + strconv.Itoa(k)
}

// checkTopicNames returns an error if topics are named twice, or if their number is not that of TOPICS.
func (p *Plan) checkTopicNames() error {
	names := slices.Compact(slices.Sorted(slices.Values(p.TopicNames)))
	switch n := len(p.TopicNames); {
	case len(names) < n:
		return fmt.Errorf("TOPIC names a topic twice: %s", strings.Join(p.TopicNames, ", "))
	case n > 0 && p.Topics > 0 && p.Topics != n:
		return fmt.Errorf("TOPICS must be the number of topics that TOPIC names, %d, got %d; leave TOPICS out", n, p.Topics)
	}
	return nil
}

// Padding returns the text that makes each published message as large as MESSAGE_KB.
func (p *Plan) Padding() string { return strings.Repeat("x", p.MessageKB<<10) }

// checkRate limits the interval between messages of a stream, which follows from rate and topics.
func (p *Plan) checkRate() error {
	if p.Published() && p.PublishInterval() < shortestInterval {
		return fmt.Errorf("TOPICS is %d and PUBLISH_RATE %v: a topic takes at most %v messages per second; raise TOPICS, or lower PUBLISH_RATE",
			p.Topics, p.PublishRate, 1/shortestInterval)
	}
	return nil
}

// MarkerOf returns the value of {run} in the messages of the kth topic. A stream does not count a message of another
// topic.
func (p *Plan) MarkerOf(k int) string { return p.Marker + "." + strconv.Itoa(k) }

// checkService validates the settings of a described service against each other.
func (p *Plan) checkService() error {
	if err := p.checkTopicNames(); err != nil {
		return err
	}
	holdSeconds := float64(p.Seconds - DisconnectLead)
	switch {
	case p.Service == "":
		if p.Topics != 0 || p.PublishRate != 0 || len(p.TopicNames) > 0 {
			return fmt.Errorf("TOPIC, TOPICS and PUBLISH_RATE are for a service that is published to, and %s publishes by itself: name one by SERVICE, or leave them out", NoopService)
		}
		if p.TokenTTL > 0 {
			return fmt.Errorf("TOKEN_TTL is for a service whose description has token(), and %s has none: name one by SERVICE, or leave it out", NoopService)
		}
		return nil
	case IsServiceFile(p.Service) && (!filepath.IsAbs(p.Service) || !strings.HasSuffix(p.Service, ".js")):
		return fmt.Errorf("SERVICE is %q: write the whole path of a file that ends in .js, or the name of a module of load-tests/services", p.Service)
	case !IsServiceFile(p.Service) && !serviceName.MatchString(p.Service):
		return fmt.Errorf("SERVICE is %q: write the name of a module of load-tests/services, such as nchan, or the path of a file that ends in .js", p.Service)
	case p.Topics > 0 && p.PublishRate == 0:
		return fmt.Errorf("TOPICS is %d, but PUBLISH_RATE is 0; set PUBLISH_RATE, or remove TOPICS", p.Topics)
	case p.PublishRate > 0 && p.Topics == 0:
		return fmt.Errorf("PUBLISH_RATE is %v, but TOPICS is 0; set TOPICS, or remove PUBLISH_RATE", p.PublishRate)
	case p.Topics > p.Connections:
		return fmt.Errorf("TOPICS must be at most CONNECTIONS, got %d and %d; lower TOPICS or raise CONNECTIONS", p.Topics, p.Connections)
	case p.Published() && len(p.BackendURLs()) > 1:
		return fmt.Errorf("BACKEND_URL names %d services, but what is published to one reaches no stream of another: name one, or leave TOPICS and PUBLISH_RATE out", len(p.BackendURLs()))
	case p.Published() && holdSeconds < 2*p.PublishInterval():
		return fmt.Errorf("TOPICS is %d and PUBLISH_RATE %v: a message for each stream every %.4g s, so a stream of %v s receives fewer than two; lower TOPICS, or raise PUBLISH_RATE or SECONDS",
			p.Topics, p.PublishRate, p.PublishInterval(), holdSeconds)
	case holdSeconds < 2*p.NoopInterval:
		return fmt.Errorf("SECONDS is %d, but the service sends something only every %v s: a stream of %v s receives fewer than two; lengthen the run",
			p.Seconds, p.NoopInterval, holdSeconds)
	}
	return nil
}
