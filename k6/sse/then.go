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
	"github.com/sse-soak/sse-soak/k6/network"
)

// A secondRequest is the option `then`: a request that each stream sends after its first event, or after the first one
// with a given name. Some services send further events only after such a request.
type secondRequest struct {
	method string
	url    *text
	header []headerText
	body   *text  // nil: none
	event  string // name of the event before the request; "": the first event with any name
	ok     []int  // accepted statuses; empty: 200 to 299
}

// A text is a template, or a function of the first event that returns a string.
type text struct {
	template template
	fn       sobek.Callable // nil: the template is used
}

type headerText struct {
	name  string
	value *text
}

// parseThen parses the option `then`, and stores its timeout, if any, in timeout.
func parseThen(rt *sobek.Runtime, v sobek.Value, timeout *time.Duration) (*secondRequest, error) {
	obj, ok := v.(*sobek.Object)
	if !ok {
		return nil, fmt.Errorf("must be an object with a url, got %s", network.Quote(v))
	}
	o := &secondRequest{method: http.MethodPost}
	for _, name := range obj.Keys() {
		v := obj.Get(name)
		if sobek.IsUndefined(v) {
			continue
		}
		var err error
		if name == "timeout" {
			*timeout, err = network.Duration(v)
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

// parseHeaderTexts parses an object whose properties are header fields. It returns nil for null.
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

// parseStatuses parses a list of statuses from 200 to 599.
func parseStatuses(rt *sobek.Runtime, v sobek.Value) (out []int, err error) {
	if err = rt.ExportTo(v, &out); err != nil {
		return nil, fmt.Errorf("must be a list of statuses such as [200, 204], got %s", network.Quote(v))
	}
	if len(out) == 0 {
		return nil, errors.New("must contain at least one status, such as 200")
	}
	for _, status := range out {
		if status < 200 || status > 599 {
			return nil, fmt.Errorf("must contain only statuses from 200 to 599, got %d", status)
		}
	}
	return out, nil
}

func (o *secondRequest) follows(name []byte) bool { return o.event == "" || o.event == string(name) }

// needsJS reports whether any part is a function, which must run on the event loop.
func (o *secondRequest) needsJS() bool {
	return o.url.fn != nil || o.body != nil && o.body.fn != nil ||
		slices.ContainsFunc(o.header, func(h headerText) bool { return h.value.fn != nil })
}

// value returns the text for an event: the result of the function, or the template with escaped values.
func (t *text) value(rt *sobek.Runtime, field string, e *firstEvent, escape func(string) string) (string, error) {
	if t.fn == nil {
		return t.template.fill(e, escape), nil
	}
	v, err := t.fn(sobek.Undefined(), rt.ToValue(e))
	if err != nil {
		return "", err
	}
	s, ok := v.Export().(string)
	if !ok {
		return "", fmt.Errorf("EventSource: option then: %s: the function must return a string, got %s", field, v)
	}
	return s, nil
}

// fill returns the request for an event, or the exception of a function. If needsJS returns true, fill must run on the
// event loop.
func (o *secondRequest) fill(rt *sobek.Runtime, e *firstEvent) (*sseclient.SecondRequest, error) {
	escape := escapeURL
	r := &sseclient.SecondRequest{Method: o.method, Header: make(http.Header), ByService: o.url.template.isPlaceholder()}
	if r.ByService {
		escape = noEscape
	}
	if len(o.ok) > 0 {
		r.OK = func(status int) bool { return slices.Contains(o.ok, status) }
	}
	var err error
	if r.URL, err = o.url.value(rt, "url", e, escape); err != nil {
		return nil, err
	}
	for _, h := range o.header {
		value, err := h.value.value(rt, h.name, e, noEscape)
		if err != nil {
			return nil, err
		}
		r.Header.Set(h.name, value)
	}
	if o.body != nil {
		r.Body, err = o.body.value(rt, "body", e, escapeFor(r.Header.Get("Content-Type")))
	}
	return r, err
}

// followUp reports whether the second request follows an event. If so, it sends the request, on the event loop if a
// part of it is a function.
func (s *eventSource) followUp(e *eventstream.Event, f *sseclient.FollowUp) bool {
	second := s.opts.secondRequest
	if !second.follows(e.Name) {
		return false
	}
	first := &firstEvent{ID: eventstream.Text(e.ID), Name: eventstream.Text(e.Name), Data: eventstream.Text(e.Data)}
	if !second.needsJS() {
		f.Send(second.fill(nil, first))
		return true
	}
	s.post(func() error {
		if s.ready == stateClosed || s.session.Interrupted() || !f.Pending() {
			return nil
		}
		request, err := second.fill(s.session.m.vu.Runtime(), first)
		if err == nil {
			f.Send(request, nil)
		}
		return err
	})
	return true
}
