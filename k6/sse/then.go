package sse

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/internal/redirect"
	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// SecondRequester makes the second request in Go: a value that a script gives as the option
// `then` in place of an object. No JS runs for it.
type SecondRequester interface {
	// SecondRequest is asked about each event of a stream until it returns a request or an
	// error; nil and nil say that the stream goes on to wait. It is called by the goroutine
	// that reads the stream, after the observer's Event, and must not block. e is valid only
	// during the call. An error ends the stream with ReasonThen.
	SecondRequest(e *eventstream.Event) (*SecondRequest, error)
}

// SecondRequest is one that a SecondRequester has made.
type SecondRequest struct {
	Method string // "" for POST
	URL    string // absolute, or relative to the stream's after redirects
	Header http.Header
	Body   string
	OK     func(status int) bool // whether a status is right; nil for 200 to 299
}

// secondRequest is the option `then`: a request that each stream sends after its first event, as services
// want it whose events begin only then.
type secondRequest struct {
	method  string
	url     *text
	header  []headerText
	body    *text
	event   string        // the name of the event that it waits for; "" for the first of any name
	ok      []int         // the statuses that are right; empty for all of 200 to 299
	timeout time.Duration // 0: none

	inGo    SecondRequester       // in place of all the others but timeout
	accepts func(status int) bool // in place of ok
}

// text is a template, or a function of the first event that returns a string.
type text struct {
	template *template
	fn       sobek.Callable
}

type headerText struct {
	name  string
	value *text
}

// parseThen reads the option. Its errors name the member.
func parseThen(rt *sobek.Runtime, v sobek.Value, timeout time.Duration) (*secondRequest, error) {
	obj, ok := v.(*sobek.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object with a url", v)
	}
	if inGo, ok := obj.Export().(SecondRequester); ok {
		return &secondRequest{inGo: inGo, timeout: timeout}, nil
	}
	o := &secondRequest{method: http.MethodPost, timeout: timeout}
	for _, name := range obj.Keys() {
		v := obj.Get(name)
		if sobek.IsUndefined(v) {
			continue
		}
		if err := o.set(rt, name, v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if o.url == nil {
		return nil, errors.New("url is missing")
	}
	return o, nil
}

func (o *secondRequest) set(rt *sobek.Runtime, name string, v sobek.Value) (err error) {
	switch name {
	case "method":
		o.method, err = parseMethod(v)
	case "url":
		o.url, err = parseText(v)
	case "headers":
		o.header, err = parseHeaderTexts(rt, v)
	case "body":
		o.body, err = parseText(v)
	case "event":
		o.event = v.String()
	case "ok":
		o.ok, err = parseStatuses(rt, v)
	case "timeout":
		o.timeout, err = parseDuration(v)
	default:
		return errors.New("unknown: there are method, url, headers, body, event, ok and timeout")
	}
	return err
}

func parseText(v sobek.Value) (*text, error) {
	if fn, ok := sobek.AssertFunction(v); ok {
		return &text{fn: fn}, nil
	}
	s, ok := v.Export().(string)
	if !ok {
		return nil, fmt.Errorf("%s is neither a string nor a function", v)
	}
	t, err := parseTemplate(s)
	return &text{template: t}, err
}

func parseHeaderTexts(rt *sobek.Runtime, v sobek.Value) (out []headerText, err error) {
	if common.IsNullish(v) {
		return nil, nil
	}
	obj := v.ToObject(rt)
	for _, name := range obj.Keys() {
		h := headerText{name: name}
		if h.value, err = parseText(obj.Get(name)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err = checkHeader(name, ""); err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

func parseStatuses(rt *sobek.Runtime, v sobek.Value) (out []int, err error) {
	if err = rt.ExportTo(v, &out); err != nil || len(out) == 0 {
		return nil, fmt.Errorf("%s is no list of statuses as [200, 204]", v)
	}
	for _, status := range out {
		if status < 200 || status > 599 {
			return nil, fmt.Errorf("%d is no status", status)
		}
	}
	return out, nil
}

// right says whether an answer of this status is what the service should say.
func (o *secondRequest) right(status int) bool {
	if o.accepts != nil {
		return o.accepts(status)
	}
	if len(o.ok) == 0 {
		return status >= 200 && status <= 299
	}
	return slices.Contains(o.ok, status)
}

// ask has the request made in Go; nil and nil where it is not the event.
func (o *secondRequest) ask(e *eventstream.Event) (*secondRequest, error) {
	r, err := o.inGo.SecondRequest(e)
	if r == nil || err != nil {
		return nil, err
	}
	made := &secondRequest{
		method: cmp.Or(r.Method, http.MethodPost), url: literal(r.URL), body: literal(r.Body), timeout: o.timeout, accepts: r.OK,
	}
	for name, values := range r.Header {
		if err := checkHeader(name, ""); err != nil {
			return nil, err
		}
		made.header = append(made.header, headerText{name, literal(strings.Join(values, ", "))})
	}
	return made, nil
}

// literal is a text without placeholders, whatever is in it.
func literal(s string) *text { return &text{template: &template{rest: s}} }

// awaits says whether an event of this name is the one.
func (o *secondRequest) awaits(name []byte) bool { return o.event == "" || o.event == string(name) }

// texts are all parts of the request.
func (o *secondRequest) texts() []*text {
	all := []*text{o.url}
	for _, h := range o.header {
		all = append(all, h.value)
	}
	if o.body != nil {
		all = append(all, o.body)
	}
	return all
}

// needsJS says that a part is a function: it runs on the event loop.
func (o *secondRequest) needsJS() bool {
	return slices.ContainsFunc(o.texts(), func(t *text) bool { return t.fn != nil })
}

// withFunctionsCalled returns the same with what the functions make of an event in their place. An
// exception of one is returned. On the event loop.
func (o *secondRequest) withFunctionsCalled(rt *sobek.Runtime, e *firstEvent) (*secondRequest, error) {
	done := *o
	done.header = slices.Clone(o.header)
	var err error
	call := func(what string, t *text) *text {
		if err != nil || t == nil || t.fn == nil {
			return t
		}
		var v sobek.Value
		if v, err = t.fn(sobek.Undefined(), rt.ToValue(e)); err != nil {
			return t
		}
		s, ok := v.Export().(string)
		if !ok {
			err = fmt.Errorf("EventSource: option then: %s: the function returned %s, no string", what, v)
		}
		return literal(s)
	}
	done.url = call("url", o.url)
	for i, h := range done.header {
		done.header[i].value = call(h.name, h.value)
	}
	done.body = call("body", o.body)
	return &done, err
}

// request fills the templates in. stream is the URL of the stream as asked for. base is the one that answered, after redirects;
// a relative URL is resolved to it. If the service chose the origin, by its event or a redirect, request applies the rule of
// redirects: another origin gets nothing, or with follow no header.
func (o *secondRequest) request(state *lib.State, stream, base *url.URL, e *firstEvent, follow bool) (*request, error) {
	escape := inURL
	crosses := false
	if o.url.template.bare() {
		escape = asIs // the service says where to
	}
	to, err := base.Parse(o.url.template.fill(e, escape))
	if err == nil {
		to, err = parseURL(to.String())
	}
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	r := &request{
		url: to, method: o.method, header: make(http.Header), jar: state.CookieJar, plain: true,
		userAgent: state.Options.UserAgent.String, maxRedirects: redirectLimit(state),
	}
	if o.url.template.bare() || redirect.Origin(base) != redirect.Origin(stream) {
		if crosses, err = redirect.Check(stream, to, follow, o.body != nil); err != nil {
			return nil, fmt.Errorf("url: %w", err)
		}
	}
	for _, h := range o.header {
		if crosses {
			break
		}
		value := h.value.template.fill(e, asIs)
		if err := checkHeader(h.name, value); err != nil {
			return nil, err
		}
		r.header.Set(h.name, strings.TrimSpace(value))
	}
	if o.body != nil {
		r.body = o.body.template.fill(e, escapeFor(r.header.Get("Content-Type")))
	}
	return r, nil
}
