package soak

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// credentials are the secrets of one stream, which no finding may show. They change on the event loop before an attempt to connect, while
// the stream is not read; the reader of the stream reads them.
type credentials struct {
	secrets         []string  // of the environment
	token, previous string    // what token() gave last, and before that
	issuedAt        time.Time // when it first gave this one
	isNew           bool      // that was for the last attempt
}

// set stores the token for the next attempt.
func (c *credentials) set(token string, now time.Time) {
	if c.isNew = token != c.token; c.isNew {
		c.token, c.previous, c.issuedAt = token, c.token, now
	}
}

// hide replaces the secrets in a text. Nil credentials have none.
func (c *credentials) hide(text string) string {
	if c == nil {
		return text
	}
	return secret.Hide(text, append([]string{c.token, c.previous}, c.secrets...)...)
}

// excerpt returns what a finding shows of data, without secrets: a service may repeat what it received.
//
//go:noinline
func (c *credentials) excerpt(data []byte) string {
	const maxLength = 1 << 16
	return excerpt([]byte(c.hide(string(data[:min(len(data), maxLength)]))))
}

// describe describes the token that the service refused, without its value.
func (c *credentials) describe(now time.Time) string {
	which := "the same one again"
	if c.isNew {
		which = "a new one"
	}
	return fmt.Sprintf("the service refused the token at a reconnect: token() gave %s, %.1f s old", which, now.Sub(c.issuedAt).Seconds())
}

// recordEnd returns the end for a finding: without secrets, and with an expired token as its cause.
func (c *credentials) recordEnd(at time.Time, end sseclient.Close, streams int) sseclient.Close {
	if end.Err == nil {
		return end
	}
	text := end.Err.Error()
	if e := (*sobek.Exception)(nil); errors.As(end.Err, &e) { // where in the module is too long for a finding
		text = strings.Replace(text, e.Error(), e.Value().String(), 1)
	}
	text = c.hide(text)
	first := 0 // how many streams there were if this was the first attempt
	if end.Reason == sseclient.ReasonThen {
		first = 1
	}
	if refused := end.Status == http.StatusUnauthorized || end.Status == http.StatusForbidden; refused && c != nil && c.token != "" && streams > first {
		text = c.describe(at) + "; " + removeStatus(text, end.Status)
	}
	end.Err = errors.New(text)
	return end
}

// callToken asks the module for a token, of the lifetime that the run wants.
func (s *jsService) callToken() (string, error) {
	ttl := sobek.Undefined()
	if seconds := s.m.recorder.thePlan().TokenTTL; seconds > 0 {
		ttl = s.m.vu.Runtime().ToValue(seconds)
	}
	return s.call(s.token, "token", ttl)
}

// renew asks for what the next attempt of stream n sends of its own.
func (s *jsService) renew(n int, request *requestOverrides) (err error) {
	if s.token != nil {
		if request.values.Token, err = s.callToken(); err != nil { // of the second request, too, which has the same values
			return err
		}
		request.credentials.set(request.values.Token, time.Now())
	}
	request.url, err = s.customURL(n)
	return err
}
