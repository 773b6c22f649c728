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
	event  string      // name of the event before the request; "": the first event with any name
	ok     []int       // accepted statuses; empty: 200 to 299
	parts  sobek.Value // the URL, the headers and the body; see copyThen in event_source.js
}

// A firstEvent is the event that provides values for a second request.
type firstEvent struct {
	ID   string `js:"id"`   // the last event ID after the event
	Name string `js:"name"` // "" if the event has none
	Data string `js:"data"`
}

// parseThen parses the option `then`, and stores its timeout, if any, in timeout.
func (m *Module) parseThen(v sobek.Value, timeout *time.Duration) (*secondRequest, error) {
	obj, ok := v.(*sobek.Object)
	if !ok {
		return nil, fmt.Errorf("must be an object with a url, got %s", network.Quote(v))
	}
	o, rt := &secondRequest{method: http.MethodPost}, m.vu.Runtime()
	for _, name := range obj.Keys() {
		v := obj.Get(name)
		if sobek.IsUndefined(v) {
			continue
		}
		var err error
		switch name {
		case "method":
			o.method, err = parseMethod(v)
		case "headers":
			err = checkHeaderNames(rt, v)
		case "event":
			o.event = v.String()
		case "ok":
			o.ok, err = parseStatuses(rt, v)
		case "timeout":
			*timeout, err = network.Duration(v)
		case "url", "body":
		default:
			err = errors.New("unknown property; use method, url, headers, body, event, ok or timeout")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if u := obj.Get("url"); u == nil || sobek.IsUndefined(u) {
		return nil, errors.New("url is missing")
	}
	var err error
	o.parts, err = m.copyThen(sobek.Undefined(), obj)
	Must(rt, err)
	return o, nil
}

func checkHeaderNames(rt *sobek.Runtime, v sobek.Value) error {
	if common.IsNullish(v) {
		return nil
	}
	for _, name := range v.ToObject(rt).Keys() {
		if err := sseclient.CheckHeader(name, ""); err != nil {
			return err
		}
	}
	return nil
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

// followUp reports whether the second request follows an event. If so, it sends the request from the event loop.
func (s *eventSource) followUp(e *eventstream.Event, f *sseclient.FollowUp) bool {
	second := s.opts.secondRequest
	if second.event != "" && second.event != string(e.Name) {
		return false
	}
	first := &firstEvent{ID: eventstream.Text(e.ID), Name: eventstream.Text(e.Name), Data: eventstream.Text(e.Data)}
	s.post(func() error {
		if s.ready == stateClosed || s.session.Interrupted() || !f.Pending() {
			return nil
		}
		request, err := s.session.m.fillSecond(second, first)
		if err == nil {
			f.Send(request, nil)
		}
		return err
	})
	return true
}

// fillSecond returns the second request for an event, or the exception of a function of the script.
func (m *Module) fillSecond(o *secondRequest, first *firstEvent) (*sseclient.SecondRequest, error) {
	rt := m.vu.Runtime()
	v, err := m.fillThen(sobek.Undefined(), o.parts, rt.ToValue(first))
	if err != nil {
		return nil, err
	}
	var filled struct {
		URL       string            `js:"url"`
		Headers   map[string]string `js:"headers"`
		Body      string            `js:"body"`
		ByService bool              `js:"byService"`
	}
	Must(rt, rt.ExportTo(v, &filled))
	r := &sseclient.SecondRequest{
		Method: o.method, URL: filled.URL, Header: make(http.Header), Body: filled.Body, ByService: filled.ByService,
	}
	for name, value := range filled.Headers {
		r.Header.Set(name, value)
	}
	if len(o.ok) > 0 {
		r.OK = func(status int) bool { return slices.Contains(o.ok, status) }
	}
	return r, nil
}
