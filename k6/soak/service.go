package soak

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
	"github.com/sse-soak/sse-soak/k6/sse"
)

// A jsService is a result of soak.service: the compiled description and its functions.
type jsService struct {
	*service.Service
	m                *module
	token, url, body sobek.Callable // nil: the description has no such function
	ignoresTTL       bool           // token() has no parameter
}

// noParameters matches the source of a function without parameters.
var noParameters = regexp.MustCompile(`^[^(=]*\(\s*\)`)

// checkTokenTTL returns an error if ttl is set and token() has no parameter for it. ttl is in seconds; 0: not set.
func (s *jsService) checkTokenTTL(ttl int) error {
	const remedy = "define token: (ttl) => …, which returns a token that is valid for ttl seconds"
	switch {
	case ttl <= 0:
		return nil
	case s.token == nil:
		return fmt.Errorf("TOKEN_TTL is %d, but the description has no token(); %s", ttl, remedy)
	case s.ignoresTTL:
		return fmt.Errorf("TOKEN_TTL is %d, but token() of the description has no parameter; %s", ttl, remedy)
	}
	return nil
}

func (m *module) service(description *sobek.Object) *sobek.Object {
	rt := m.vu.Runtime()
	m.requireInit("soak.service")
	source, err := plan.SourceOf(m.environment)
	if err == nil {
		err = source.CheckInterval()
	}
	sse.Must(rt, err)
	compiled, err := service.Parse(jsonOf(rt, description))
	if err == nil {
		err = m.recorder.setService(compiled)
	}
	sse.Must(rt, err)
	s := &jsService{Service: compiled, m: m}
	token := description.Get("token")
	if s.token, _ = sobek.AssertFunction(token); s.token != nil {
		s.ignoresTTL = noParameters.MatchString(token.String())
	}
	s.url, _ = sobek.AssertFunction(description.Get("url"))
	s.body, _ = sobek.AssertFunction(description.Get("body"))
	out := rt.NewObject()
	m.compiled[out] = s
	for name, value := range map[string]any{
		"name":     compiled.Name,
		"numbered": compiled.Message.Numbered,
		"shared":   compiled.Message.Shared,
		// published and padded depend on the description, not on whether this run publishes.
		"published":      compiled.Publish != nil,
		"padded":         compiled.Publish.Uses(service.Padding),
		"every":          compiled.Message.Interval.Seconds(),
		"heartbeatEvery": compiled.HeartbeatEvery.Seconds(),
		"endBy":          endNames[compiled.End.By],
		"lifetime":       compiled.End.Shortest.Seconds(),
	} {
		sse.Must(rt, out.Set(name, value))
	}
	return out
}

// jsonOf returns a description as JSON for service.Parse, with true in place of each function.
func jsonOf(rt *sobek.Runtime, description *sobek.Object) []byte {
	stringify, ok := sobek.AssertFunction(rt.Get("JSON").ToObject(rt).Get("stringify"))
	if !ok {
		common.Throw(rt, errors.New("soak.service: JSON.stringify is not a function"))
	}
	replaceFunction := func(call sobek.FunctionCall) sobek.Value {
		value := call.Argument(1)
		if _, isFunction := sobek.AssertFunction(value); isFunction {
			return rt.ToValue(true)
		}
		return value
	}
	text, err := stringify(sobek.Undefined(), description, rt.ToValue(replaceFunction))
	if err != nil {
		common.Throw(rt, fmt.Errorf("encode the description as JSON: %w", sse.GoError(err)))
	}
	if sobek.IsUndefined(text) {
		return nil
	}
	return []byte(text.String())
}

// defaultService returns the service of a script that declares none, nil if the script declares one.
func (r *recorder) defaultService(m *module) *jsService {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasService {
		return nil
	}
	return &jsService{Service: r.service, m: m}
}

// setService stores the description. Each virtual user loads the script and must declare the same description.
func (r *recorder) setService(s *service.Service) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasService && r.service.Hash() != s.Hash() {
		return errors.New("soak.service was called with two different descriptions; use only constant values in the description")
	}
	if !r.hasService {
		r.service, r.hasService = s, true
		r.configure()
	}
	return nil
}

// values returns the values of placeholders in the requests of client n. If the description has token(), values
// calls it, and must run on the event loop.
func (s *jsService) values(n int, id string) (v *service.Values, err error) {
	p := s.m.recorder.planCopy()
	topic := p.Topic(n)
	v = &service.Values{Base: p.BackendURL, Topic: p.TopicName(topic), ID: id, Run: p.MarkerOf(topic), N: int64(n)}
	if s.token != nil {
		v.Token, err = s.callToken()
	} else {
		v.Token, err = s.m.token(s.TokenVariable)
	}
	return v, err
}

// call calls a function of the description, on the event loop. Errors contain name.
func (s *jsService) call(f sobek.Callable, name string, args ...sobek.Value) (string, error) {
	value, err := f(sobek.Undefined(), args...)
	if err == nil {
		err = requireText(value)
	}
	if err != nil {
		return "", fmt.Errorf("%s() of the service %s: %w", name, s.Name, err)
	}
	return value.String(), nil
}

// requireText returns an error if a function did not return a string. A promise, for example, would become the token
// "[object Promise]".
func requireText(value sobek.Value) error {
	switch {
	case common.IsNullish(value):
		return errors.New("the function must return a string, got nothing")
	case sobek.IsString(value):
		return nil
	}
	if o, isObject := value.(*sobek.Object); isObject {
		if _, isPromise := o.Export().(*sobek.Promise); isPromise {
			return errors.New("the function must return a string, got a promise; do not declare it async")
		}
	}
	return fmt.Errorf("the function must return a string, got %s", value)
}

// hasFunctions reports whether each attempt to connect calls JavaScript.
func (s *jsService) hasFunctions() bool { return s.token != nil || s.url != nil || s.body != nil }

// customRequest sets the URL and the body of request n with the functions of the description.
func (s *jsService) customRequest(r *sseclient.Request, n int64, c *finiteClient, prompt string) (err error) {
	rt := s.m.vu.Runtime()
	number := rt.ToValue(n)
	if s.url != nil {
		r.URL, err = s.call(s.url, "url", number)
	}
	if s.body != nil && err == nil {
		r.Body, err = s.call(s.body, "body", number, rt.ToValue(c.completed), rt.ToValue(c.value), rt.ToValue(prompt))
	}
	return err
}

// requestOverrides returns the values and credentials for the requests of stream n, and the result of url(). It runs on
// the event loop.
func (s *jsService) requestOverrides(n int, id string) (*requestOverrides, error) {
	values, err := s.values(n, id)
	if err != nil {
		return nil, err
	}
	overrides := &requestOverrides{values: values, credentials: &credentials{secrets: s.m.tokens()}}
	overrides.credentials.set(values.Token, time.Now())
	overrides.url, err = s.customURL(n)
	return overrides, err
}

// customURL returns the result of url() of the description, "" if it has no such function.
func (s *jsService) customURL(n int) (string, error) {
	if s.url == nil {
		return "", nil
	}
	return s.call(s.url, "url", s.m.vu.Runtime().ToValue(n))
}

func requestUsing(r *service.Request, v *service.Values) sseclient.Request {
	out := sseclient.Request{URL: string(r.URL.Append(nil, v)), Method: r.Method, Header: http.Header{}, Body: string(r.Body.Append(nil, v))}
	for name, value := range r.FilledHeaders(v) {
		out.Header.Set(name, strings.TrimSpace(value))
	}
	return out
}

// secondRequestFor returns the second request of a stream if e triggers it, and nil otherwise. It returns an error if e
// triggers the request but lacks the value that the request needs.
func (s *jsService) secondRequestFor(e *eventstream.Event, values *service.Values) (*sseclient.SecondRequest, error) {
	second := s.SecondRequest
	block := blockOf(e, true, len(e.Comment) > 0)
	client, ok := s.Client(&block)
	if !ok {
		if string(e.Name) != second.Event {
			return nil, nil //nolint:nilnil // another event
		}
		known := credentials{token: values.Token}
		return nil, fmt.Errorf("connect.then.client: the event %q does not contain the value: %s", second.Event, known.excerpt(e.Data))
	}
	v := *values
	v.Client = client
	r := requestUsing(&second.Request, &v)
	return &sseclient.SecondRequest{Method: r.Method, URL: r.URL, Header: r.Header, Body: r.Body, OK: second.Accepts}, nil
}

var endNames = [...]string{service.ByClient: "client", service.ByRequest: "request", service.ByServer: "server", service.ByEvent: "event"}
