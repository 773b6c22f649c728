package sse

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A secondRequest is the option `then`: a request that each stream sends after its first event. Some services send
// further events only after that.
type secondRequest struct {
	method string
	url    *text
	header []headerText
	body   *text
	event  string // name of the event before the request; "": the first event with any name
	ok     []int  // accepted statuses; empty: 200 to 299
	inGo   secondRequester
}

// A secondRequester makes the second request in Go. k6/x/soak returns such a value.
type secondRequester interface {
	FollowUp(e *eventstream.Event, f *sseclient.FollowUp) bool
}

// A text is a template, or a function of the first event that returns a string.
type text struct {
	template *template
	fn       sobek.Callable
}

type headerText struct {
	name  string
	value *text
}

// parseThen parses the option.
func parseThen(rt *sobek.Runtime, v sobek.Value, timeout *time.Duration) (*secondRequest, error) {
	obj, ok := v.(*sobek.Object)
	if !ok {
		return nil, fmt.Errorf("must be an object with a url, got %s", v)
	}
	if inGo, ok := obj.Export().(secondRequester); ok {
		return &secondRequest{inGo: inGo}, nil
	}
	o := &secondRequest{method: http.MethodPost}
	for _, name := range obj.Keys() {
		v := obj.Get(name)
		if sobek.IsUndefined(v) {
			continue
		}
		var err error
		if name == "timeout" {
			*timeout, err = parseDuration(v)
		} else {
			err = o.set(rt, name, v)
		}
		if err != nil {
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
	default:
		return errors.New("unknown property; use method, url, headers, body, event, ok or timeout")
	}
	return err
}

func parseText(v sobek.Value) (*text, error) {
	if fn, ok := sobek.AssertFunction(v); ok {
		return &text{fn: fn}, nil
	}
	s, ok := v.Export().(string)
	if !ok {
		return nil, fmt.Errorf("must be a string or a function, got %s", v)
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
		if err = sseclient.CheckHeader(name, ""); err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

func parseStatuses(rt *sobek.Runtime, v sobek.Value) (out []int, err error) {
	if err = rt.ExportTo(v, &out); err != nil || len(out) == 0 {
		return nil, fmt.Errorf("must be a list of statuses such as [200, 204], got %s", v)
	}
	for _, status := range out {
		if status < 200 || status > 599 {
			return nil, fmt.Errorf("must contain only statuses from 200 to 599, got %d", status)
		}
	}
	return out, nil
}

// literal returns a text without placeholders.
func literal(s string) *text { return &text{template: &template{rest: s}} }

// awaits reports whether the request follows an event with this name.
func (o *secondRequest) awaits(name []byte) bool { return o.event == "" || o.event == string(name) }

// texts returns all parts of the request.
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

// needsJS reports whether a part is a function, which must run on the event loop.
func (o *secondRequest) needsJS() bool {
	return slices.ContainsFunc(o.texts(), func(t *text) bool { return t.fn != nil })
}

// evaluate returns a copy with the results of the functions for an event, or the exception of a function. It runs on
// the event loop.
func (o *secondRequest) evaluate(rt *sobek.Runtime, e *firstEvent) (*secondRequest, error) {
	done := *o
	done.header = slices.Clone(o.header)
	var err error
	call := func(field string, t *text) *text {
		if err != nil || t == nil || t.fn == nil {
			return t
		}
		var v sobek.Value
		if v, err = t.fn(sobek.Undefined(), rt.ToValue(e)); err != nil {
			return t
		}
		s, ok := v.Export().(string)
		if !ok {
			err = fmt.Errorf("EventSource: option then: %s: the function must return a string, got %s", field, v)
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

// fill returns the request for an event.
func (o *secondRequest) fill(e *firstEvent) *sseclient.SecondRequest {
	escape := escapeURL
	byService := o.url.template.isPlaceholder()
	if byService {
		escape = noEscape
	}
	r := &sseclient.SecondRequest{Method: o.method, URL: o.url.template.fill(e, escape), Header: make(http.Header), ByService: byService}
	if len(o.ok) > 0 {
		r.OK = func(status int) bool { return slices.Contains(o.ok, status) }
	}
	for _, h := range o.header {
		r.Header.Set(h.name, h.value.template.fill(e, noEscape))
	}
	if o.body != nil {
		r.Body = o.body.template.fill(e, escapeFor(r.Header.Get("Content-Type")))
	}
	return r
}

// followUp prepares the second request of a stream after its first event, on the event loop if a part of it is a
// function.
func (s *eventSource) followUp(e *eventstream.Event, f *sseclient.FollowUp) bool {
	second := s.opts.secondRequest
	if !second.awaits(e.Name) {
		return false
	}
	first := &firstEvent{ID: eventstream.Text(e.ID), Name: eventstream.Text(e.Name), Data: eventstream.Text(e.Data)}
	if !second.needsJS() {
		f.Send(second.fill(first), nil)
		return true
	}
	s.post(func() error {
		if s.ready == stateClosed || s.session.Interrupted() || !f.Pending() {
			return nil
		}
		request, err := second.evaluate(s.session.m.vu.Runtime(), first)
		if err == nil {
			f.Send(request.fill(first), nil)
		}
		return err
	})
	return true
}
