package sse

import (
	"errors"
	"fmt"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

// renew calls the function of the script that returns changes for the next attempt, such as a valid token. A busy event
// loop delays the attempt.
func (s *eventSource) renew(proceed func(error)) {
	s.post(func() error {
		if s.Stopped() {
			proceed(nil)
			return nil
		}
		value, err := s.opts.renew(s.obj)
		if err == nil {
			err = s.applyRenewal(value)
		}
		return s.session.finishRenewal(GoError(err), proceed)
	})
}

// finishRenewal passes the error of a renewal, or nil, to the attempt. If k6 interrupted the script, finishRenewal
// interrupts all streams and returns the error, which ends the iteration.
func (s *session) finishRenewal(err error, proceed func(error)) error {
	if interrupted := (*sobek.InterruptedError)(nil); errors.As(err, &interrupted) {
		s.Interrupt()
		proceed(nil)
		return err
	}
	proceed(err)
	return nil
}

// applyRenewal changes the request of the next attempts. Missing properties stay unchanged.
func (s *eventSource) applyRenewal(v sobek.Value) error {
	if common.IsNullish(v) {
		return nil
	}
	obj, ok := v.(*sobek.Object)
	if !ok {
		return fmt.Errorf("option renew: the function must return an object, got %s", network.Quote(v))
	}
	if _, ok := obj.Export().(*sobek.Promise); ok {
		return errors.New("option renew: the function must return an object, got a promise; do not declare it async")
	}
	next := s.opts.request
	for _, name := range obj.Keys() {
		v := obj.Get(name)
		if sobek.IsUndefined(v) {
			continue
		}
		var err error
		switch name {
		case "url":
			next.URL = v.String()
			_, err = sseclient.ParseURL(next.URL)
		case "headers":
			next.Header, err = parseHeaders(s.session.m.vu.Runtime(), v)
			s.opts.takeLastEventID(next.Header) // the stream continues from the last id
		case "body":
			if next.Body, err = parseBody(v); err == nil && next.Body != "" && s.opts.isBodiless() {
				err = sseclient.ErrBodyOfGet
			}
		default:
			err = errors.New("unknown property; use url, headers or body")
		}
		if err != nil {
			return fmt.Errorf("option renew: %s: %w", name, err)
		}
	}
	s.opts.request = next
	return nil
}

// parseRenew parses the option renew: a function, or null for none.
func parseRenew(v sobek.Value) (sobek.Callable, error) {
	if sobek.IsNull(v) {
		return nil, nil
	}
	fn, ok := sobek.AssertFunction(v)
	if !ok {
		return nil, fmt.Errorf("must be a function, got %s", network.Quote(v))
	}
	return fn, nil
}

// GoError returns the error or value that a script threw, without the position in the script. It returns interruptions
// and other errors unchanged.
func GoError(err error) error {
	var e *sobek.Exception
	if interrupted := (*sobek.InterruptedError)(nil); errors.As(err, &interrupted) || !errors.As(err, &e) {
		return err
	}
	if inner := e.Unwrap(); inner != nil {
		return inner // thrown by a Go function
	}
	return errors.New(e.Value().String())
}
