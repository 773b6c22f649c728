package publish

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
)

func (p *Publisher) send(topic int) {
	sent := p.now()
	number := p.log.Begin(topic, sent)
	v := service.Values{Base: p.c.Base, Topic: p.c.Topics[topic], Run: p.c.Run(topic), Token: p.c.Token, Padding: p.c.Padding, Seq: int64(number), SentAt: sent} // #nosec G115 -- counts the messages of one run
	p.settle(topic, number, p.exchange(&v))
}

// exchange sends one message once, and returns the outcome. It repeats a request only if a reused connection was closed
// before any byte was sent.
func (p *Publisher) exchange(v *service.Values) shard.PublishOutcome {
	deadline := time.Now().Add(p.c.Timeout)
	refused := func(problem string, err error) shard.PublishOutcome {
		return shard.PublishOutcome{State: shard.Refused, SentUS: v.SentAt, AtUS: p.now(), Local: http1.IsExhausted(err), Text: problem + ": " + p.reasonOf(err, "the server closed the connection during the TLS handshake")}
	}
	u, err := url.Parse(string(p.c.Service.Publish.URL.Append(nil, v)))
	if err != nil {
		return refused("invalid URL", withoutURL(err))
	}
	for {
		c, reused, err := p.pool.connect(p.ctx, u, deadline)
		if err != nil {
			return refused("no connection", err)
		}
		v.SentAt = p.now()
		r, text, err := p.encode(v, c.origin.route)
		if err != nil {
			_ = c.Close()
			return refused("invalid request", err)
		}
		if n, err := c.Write(text); err != nil {
			_ = c.Close()
			if n == 0 && reused && p.ctx.Err() == nil { // closed while it was idle: nothing was sent
				continue
			}
			return p.failedOutcome(c, v.SentAt, err)
		}
		return p.read(c, r, v.SentAt)
	}
}

// encode returns the request of a message, and its text, so that one Write can send it.
func (p *Publisher) encode(v *service.Values, route *proxy.Proxy) (*http.Request, []byte, error) {
	description := p.c.Service.Publish
	address := string(description.URL.Append(nil, v)) // the URL may contain the time of sending
	r, err := http.NewRequestWithContext(p.ctx, description.Method, address, bytes.NewReader(description.Body.Append(nil, v)))
	if err != nil {
		return nil, nil, withoutURL(err)
	}
	r.Header.Set("User-Agent", "sse-soak")
	for name, value := range description.FilledHeaders(v) {
		r.Header.Set(name, value)
	}
	var out bytes.Buffer
	err = http1.WriteRequest(&out, r, route)
	return r, out.Bytes(), err
}

// failedOutcome returns the outcome of a message whose connection failed. Part of the message may have been sent.
func (p *Publisher) failedOutcome(c *conn, sentUS int64, err error) shard.PublishOutcome {
	o := shard.PublishOutcome{State: shard.Open, SentUS: sentUS, AtUS: p.now(), Text: p.reasonOf(err, "the connection was closed before the response was complete")}
	if c.mayBeClosedAsIdle(err, time.Duration(o.AtUS-sentUS)*time.Microsecond) && p.ctx.Err() == nil {
		o.Idle = true
		o.Text += fmt.Sprintf("; the connection had been idle for %s, so the service may have closed it as idle while the message was being sent", c.idle.Round(time.Millisecond))
	}
	return o
}

// reasonOf returns the reason for a failure. eofReason is the reason if a read returned EOF.
func (p *Publisher) reasonOf(err error, eofReason string) string {
	var netErr net.Error
	var proxyErr *proxy.Error
	isProxy := errors.As(err, &proxyErr)
	switch {
	case p.ctx.Err() != nil:
		return "the publisher was stopped"
	case errors.As(err, &netErr) && netErr.Timeout() && isProxy:
		return fmt.Sprintf("no response from the proxy %s within %s", proxyErr.Proxy, p.c.Timeout)
	case isProxy:
	case errors.As(err, &netErr) && netErr.Timeout():
		return fmt.Sprintf("no response within %s", p.c.Timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return eofReason
	}
	return err.Error()
}

// read reads the response, and then reuses or closes the connection. The status decides the outcome, even if the body
// never ends.
func (p *Publisher) read(c *conn, r *http.Request, sentUS int64) shard.PublishOutcome {
	resp, err := c.Head(r) //nolint:bodyclose // Close would read an endless body; the connection is closed
	if err != nil && !errors.Is(err, http1.ErrInterim) {
		_ = c.Close()
		return p.failedOutcome(c, sentUS, err)
	}
	o := shard.PublishOutcome{State: shard.Confirmed, SentUS: sentUS, AtUS: p.now()}
	body := io.LimitReader(resp.Body, maxResponse)
	if !p.c.Service.Publish.Accepts(resp.StatusCode) {
		text := bufio.NewReader(body)
		begin, _ := text.Peek(maxExcerpt)                                    // less if the body is shorter
		o.State, o.Status = shard.Refused, uint16(min(resp.StatusCode, 999)) // #nosec G115 -- net/http reads three digits
		o.Text = p.describe(resp, begin, c.origin.route)
		body = text
	}
	n, err := io.Copy(io.Discard, body)
	o.BodyUS = p.now() - o.AtUS
	if err != nil || n == maxResponse || resp.Close || resp.StatusCode < http.StatusOK {
		_ = c.Close()
	} else {
		c.origin.idle.ApplyKeepAlive(resp.Header)
		c.origin.idle.Put(c)
	}
	return o
}

// maxExcerpt limits the part of a refusal's body that describe reads, and the length of its result, in bytes.
const maxExcerpt = 1 << 10

// describe returns the reason for a refusal as one line: the status, the proxy, the URL of a redirect, and the
// reason in the body. It hides the token, which a service may repeat, and removes control characters.
func (p *Publisher) describe(resp *http.Response, body []byte, route *proxy.Proxy) string {
	text := resp.Status + route.ErrorSuffix()
	if location := resp.Header.Get("Location"); location != "" {
		text += ", to " + location + ", which is not followed"
	}
	text = secret.Hide(text, p.c.Token)
	if line := proxy.Sentence(strings.NewReader(secret.Hide(string(body), p.c.Token))); line != "" {
		text += ": " + line
	}
	return format.Shorten(text, maxExcerpt)
}
