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

// A credentials value holds the secrets that findings of a stream must not show. It changes on the event loop before an
// attempt to connect, when no goroutine reads the stream.
type credentials struct {
	secrets         []string  // of the environment
	token, previous string    // the last two different results of token()
	issuedAt        time.Time // when token() first returned token
	isNew           bool      // token() returned a new token for the last attempt
}

func (c *credentials) set(token string, now time.Time) {
	if c.isNew = token != c.token; c.isNew {
		c.token, c.previous, c.issuedAt = token, c.token, now
	}
}

// hide replaces the secrets in text. c may be nil.
func (c *credentials) hide(text string) string {
	if c == nil {
		return text
	}
	return secret.Hide(text, append([]string{c.token, c.previous}, c.secrets...)...)
}

// excerpt returns the start of data for a finding. It replaces secrets, because a service may repeat them.
//
//go:noinline
func (c *credentials) excerpt(data []byte) string {
	const maxData, maxExcerpt = 1 << 16, 64
	text := c.hide(string(data[:min(len(data), maxData)]))
	if len(text) <= maxExcerpt {
		return text
	}
	return strings.ToValidUTF8(text[:maxExcerpt], "") + "…"
}

// describeToken describes the refused token without its value.
func (c *credentials) describeToken(now time.Time) string {
	kind := "the same token"
	if c.isNew {
		kind = "a new token"
	}
	return fmt.Sprintf("the service refused the token on reconnect: token() returned %s, %.1f s old", kind, now.Sub(c.issuedAt).Seconds())
}

// describeEnd returns the end of a stream for a finding, without secrets. If the service refused the token at a
// reconnect, the error explains that. streams is the number of streams that the client has had.
func (c *credentials) describeEnd(at time.Time, end sseclient.Close, streams int) sseclient.Close {
	if end.Err == nil {
		return end
	}
	text := end.Err.Error()
	if e := (*sobek.Exception)(nil); errors.As(end.Err, &e) { // the position in the module is too long for a finding
		text = strings.Replace(text, e.Error(), e.Value().String(), 1)
	}
	text = c.hide(text)
	first := 0                              // number of streams at the first attempt
	if end.Reason == sseclient.ReasonThen { // the second request follows the headers of the stream
		first = 1
	}
	if refused := end.Status == http.StatusUnauthorized || end.Status == http.StatusForbidden; refused && c != nil && c.token != "" && streams > first {
		text = c.describeToken(at) + "; " + removeStatus(text, end.Status)
	}
	end.Err = errors.New(text)
	return end
}

func (s *jsService) callToken() (string, error) {
	ttl := sobek.Undefined()
	if seconds := s.m.recorder.planCopy().TokenTTL; seconds > 0 {
		ttl = s.m.vu.Runtime().ToValue(seconds)
	}
	return s.call(s.token, "token", ttl)
}

// renew calls token() and url() of the description for the next attempt of stream n.
func (s *jsService) renew(n int, overrides *requestOverrides) (err error) {
	if s.token != nil {
		if overrides.values.Token, err = s.callToken(); err != nil { // the second request shares these values
			return err
		}
		overrides.credentials.set(overrides.values.Token, time.Now())
	}
	overrides.url, err = s.customURL(n)
	return err
}
