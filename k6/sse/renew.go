package sse

import (
	"errors"
	"fmt"
	"time"

	"github.com/grafana/sobek"
)

// again begins the next attempt when its time has come. It is what the timer calls; most sources connect right away.
func (s *eventSource) again() {
	if s.opts.rarely().renew == nil {
		s.connect()
		return
	}
	s.post(s.renew)
}

// renew asks the script what the next attempt sends, as a token that is still good, and connects. On the event loop.
func (s *eventSource) renew() error {
	return s.renewBy(func() error {
		value, err := s.opts.rare.renew(s.obj)
		if err == nil {
			err = s.takeRenewal(value)
		}
		return Thrown(err)
	})
}

// renewBy connects when what the next attempt sends was asked for. Nobody else has the
// source in hand, so what that changes needs no lock. An event loop that is busy delays the attempt. On the event loop.
func (s *source) renewBy(ask func() error) error {
	s.mu.Lock()
	over := s.moment().stopped != ""
	s.mu.Unlock()
	if over || s.hub.interrupted.Load() {
		s.end()
		return nil
	}
	err := ask()
	if interrupted := (*sobek.InterruptedError)(nil); errors.As(err, &interrupted) {
		s.end()
		return err
	}
	switch {
	case err != nil:
		go s.notRenewed(err)
	default:
		go s.connect()
	}
	return nil
}

// notRenewed tells of an attempt that never was one, and ends the source: to send what was refused, or is over, would
// test another client than the script's.
func (s *source) notRenewed(err error) {
	_, forget := s.begin()
	forget()
	s.opened = false
	s.observer.Connecting(time.Now())
	s.closed(nil, &failure{reason: ReasonRenew, err: err})
}

// takeRenewal changes what the next attempts send. What is left out stays as it was.
func (s *eventSource) takeRenewal(v sobek.Value) error {
	if v == nil || sobek.IsUndefined(v) || sobek.IsNull(v) {
		return nil
	}
	obj, ok := v.(*sobek.Object)
	if !ok {
		return fmt.Errorf("option renew: the function returned %s, no object", v)
	}
	if _, ok := obj.Export().(*sobek.Promise); ok {
		return errors.New("option renew: the function returned a promise: it cannot be async")
	}
	url, header, body := s.url, s.opts.header, s.opts.rare.body
	for _, name := range obj.Keys() {
		v := obj.Get(name)
		if sobek.IsUndefined(v) {
			continue
		}
		var err error
		switch name {
		case "url":
			url = v.String()
			_, err = parseURL(url)
		case "headers":
			header, err = parseHeaders(s.hub.vu.Runtime(), v)
		case "body":
			if body, err = parseBody(v); err == nil && body != "" && s.opts.rare.bodiless() {
				err = errBodyOfGet
			}
		default:
			err = errors.New("unknown: there are url, headers and body")
		}
		if err != nil {
			return fmt.Errorf("option renew: %s: %w", name, err)
		}
	}
	s.url, s.opts.header, s.opts.rare.body = url, header, body
	return nil
}

func parseRenew(v sobek.Value) (sobek.Callable, error) {
	if sobek.IsNull(v) {
		return nil, nil
	}
	fn, ok := sobek.AssertFunction(v)
	if !ok {
		return nil, fmt.Errorf("%s is no function", v)
	}
	return fn, nil
}

// Thrown returns the error or value that a script threw, without its position.
func Thrown(err error) error {
	var e *sobek.Exception
	if interrupted := (*sobek.InterruptedError)(nil); errors.As(err, &interrupted) || !errors.As(err, &e) {
		return err
	}
	if inner := e.Unwrap(); inner != nil {
		return inner // of a function in Go
	}
	return errors.New(e.Value().String())
}
