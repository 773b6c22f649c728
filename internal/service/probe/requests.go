package probe

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
)

// A Request is a request in the notation of the flags: a URL with placeholders such as {topic}, and headers as "Name:
// value".
type Request struct {
	Method, URL, Body string
	Headers           []string
}

func (r Request) isEmpty() bool {
	return r.Method == "" && r.URL == "" && r.Body == "" && len(r.Headers) == 0
}

type requests struct {
	name, base                      string
	connect, secondRequest, publish object
	secondHasClient                 bool // the second request has {client}
	needsToken                      bool // connect or secondRequest has {token}
	subscribeToken, publishToken    string
	missingVariables                []string // variables of tokens that the user passed in headers or URLs
}

// authScheme matches the scheme before a token in a value of Authorization.
var authScheme = regexp.MustCompile(`(?i)^((?:bearer|basic|token|apikey|key)[ ]+)(.+)$`)

// A tokenHider replaces the secrets in headers and parameters of a request with {token}.
type tokenHider struct {
	token  string // secret from the environment or from a request
	secret string // secret from a request
	isUsed bool   // a request has {token}
}

// hide returns the value of a header or parameter with {token} instead of its secret.
func (s *tokenHider) hide(value string) (string, error) {
	s.isUsed = true
	if strings.Contains(value, "{token}") {
		return value, nil
	}
	scheme := ""
	if parts := authScheme.FindStringSubmatch(value); parts != nil {
		scheme, value = parts[1], parts[2]
	}
	if s.secret != "" && s.secret != value {
		return "", errors.New("two different secrets cannot both become {token}; use the same secret in all headers and URLs of connect and the second request, and one secret in publish")
	}
	s.secret, s.token = value, value
	return scheme + "{token}", nil
}

// readRequests reads the requests of the user, and validates them as a description.
func readRequests(c *Config) (*requests, error) {
	out := &requests{name: cmp.Or(c.Name, "probed")}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("the URL of the stream must begin with http:// or https:// and have a host, got %q", c.URL)
	case u.User != nil:
		return nil, errors.New("the URL of the stream must not contain a user, because the URL becomes part of the description; pass --header 'Authorization: Basic …'")
	}
	out.base = u.Scheme + "://" + u.Host
	subscriber, publisher := &tokenHider{token: c.SubscribeToken}, &tokenHider{token: c.PublishToken}
	connect := c.Connect
	connect.URL = c.URL
	if out.connect, err = out.build(c, connect, subscriber, ""); err != nil {
		return nil, err
	}
	if !c.SecondRequest.isEmpty() {
		if out.secondRequest, err = out.build(c, c.SecondRequest, subscriber, "--then-url"); err != nil {
			return nil, err
		}
		out.secondHasClient = out.secondRequest.contains("{client}")
	}
	if !c.Publish.isEmpty() {
		if out.publish, err = out.build(c, c.Publish, publisher, "--publish-url"); err != nil {
			return nil, err
		}
	}
	if c.Topic != "" && !out.uses("{topic}") {
		return nil, fmt.Errorf("--topic must be a word in the URL, such as news in https://HOST/rooms/news/events, got %q", c.Topic)
	}
	out.needsToken = subscriber.isUsed || out.connect.contains("{token}") || out.secondRequest.contains("{token}")
	out.subscribeToken, out.publishToken = subscriber.token, publisher.token
	if subscriber.token != c.SubscribeToken {
		out.missingVariables = append(out.missingVariables, "SUBSCRIBE_TOKEN")
	}
	if publisher.token != c.PublishToken {
		out.missingVariables = append(out.missingVariables, "PUBLISH_TOKEN")
	}
	_, err = service.Parse(toJSON(out.draft("any", "id")))
	return out, err //nolint:wrapcheck // sentences for the user
}

func (a *requests) build(c *Config, r Request, s *tokenHider, flag string) (o object, err error) {
	if r.URL == "" {
		return nil, fmt.Errorf("%s is missing; set it to the URL of the request", flag)
	}
	if r.Method != "" {
		o.add("method", strings.ToUpper(r.Method))
	}
	address, err := a.normalizeURL(c, r.URL, s)
	if err != nil {
		return nil, err
	}
	o.add("url", address)
	var headers object
	for _, h := range r.Headers {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return nil, fmt.Errorf("a header must have the form 'Name: value', got %q", h)
		}
		if secret.IsSecretName(name) {
			if value, err = s.hide(value); err != nil {
				return nil, err
			}
		}
		headers.add(name, value)
	}
	if len(headers) > 0 {
		o.add("headers", headers)
	}
	if r.Body != "" {
		o.add("body", r.Body)
	}
	return o, nil
}

// normalizeURL returns a URL with {base}, {topic} and {token} instead of their values.
func (a *requests) normalizeURL(c *Config, raw string, s *tokenHider) (string, error) {
	raw, _, _ = strings.Cut(raw, "#")
	rest, hasBase := strings.CutPrefix(raw, "{base}")
	if !hasBase {
		rest, hasBase = strings.CutPrefix(raw, a.base)
	}
	start := "{base}"
	if !hasBase || rest != "" && !strings.ContainsRune("/?", rune(rest[0])) {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" {
			return "", fmt.Errorf("the URL of a request must begin with {base}, http:// or https://, got %q", raw)
		}
		start = u.Scheme + "://" + u.Host
		if rest = strings.TrimPrefix(raw, start); u.User != nil || rest == raw {
			return "", fmt.Errorf("the URL of a request must begin with http:// or https:// and have no user, got %q", u.Redacted())
		}
	}
	path, query, hasQuery := strings.Cut(rest, "?")
	path = withTopic(path, c.Topic)
	if !hasQuery {
		return start + path, nil
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, hasValue := strings.Cut(pair, "=")
		if hasValue && value != "" && secret.IsSecretName(name) {
			plain, err := url.QueryUnescape(value)
			if err != nil {
				return "", fmt.Errorf("the parameter %s of a URL must be percent-encoded", name)
			}
			if value, err = s.hide(plain); err != nil {
				return "", err
			}
		} else {
			value = withTopic(value, c.Topic)
		}
		if pairs[i] = name; hasValue {
			pairs[i] += "=" + value
		}
	}
	return start + path + "?" + strings.Join(pairs, "&"), nil
}

// withTopic replaces a topic that is a separate word, plain or encoded, with {topic}.
func withTopic(text, topic string) string {
	if topic == "" {
		return text
	}
	for _, name := range []string{topic, url.PathEscape(topic), url.QueryEscape(topic)} {
		word := regexp.MustCompile(`(^|[^\w{}-])` + regexp.QuoteMeta(name) + `($|[^\w{}-])`)
		for range 2 { // neighboring words share a separator
			text = word.ReplaceAllString(text, "${1}{topic}${2}")
		}
	}
	return text
}

// draft returns the description with which the probe sends the requests. event is the name of the event before the
// second request, and client is the place of {client} in that event.
func (a *requests) draft(event, client string) (o object) {
	o = a.start(a.connectWithSecond(event, client), nil)
	if a.publish == nil {
		o.add("message", "unchecked")
		if a.uses("{prompt}") {
			o.add("end", object{{name: "by", value: "event"}, {name: "done", value: eventIs("any")}})
		}
		return o
	}
	message := object{}
	for _, name := range []string{"seq", "run", "sentAt", "sum"} {
		if name == "seq" || a.publish.contains("{"+name+"}") {
			message.add(name, "id") // publish requires a place for each of its values
		}
	}
	o.add("publish", a.publish)
	o.add("message", message)
	return o
}

// start returns the first fields of a description. notes are the evidence for connect.
func (a *requests) start(connect object, notes []string) (o object) {
	o.add("name", a.name)
	if a.needsToken {
		o.add("token", "SUBSCRIBE_TOKEN")
	}
	o.add("connect", connect, notes...)
	return o
}

func (a *requests) uses(placeholder string) bool {
	return a.connect.contains(placeholder) || a.secondRequest.contains(placeholder) || a.publish.contains(placeholder)
}

func (a *requests) withoutTokens(text string) string {
	return secret.Hide(text, a.subscribeToken, a.publishToken)
}

func (a *requests) hideTokens(o object) {
	for _, f := range o {
		for i, note := range f.notes {
			f.notes[i] = a.withoutTokens(note)
		}
		if inner, ok := f.value.(object); ok {
			a.hideTokens(inner)
		}
	}
}

func (a *requests) connectWithSecond(event, client string, notes ...string) object {
	connect := append(object{}, a.connect...)
	if a.secondRequest == nil {
		return connect
	}
	var then object
	then.add("event", event)
	if a.secondHasClient {
		then.add("client", client)
	}
	connect.add("then", append(then, a.secondRequest...), notes...)
	return connect
}
