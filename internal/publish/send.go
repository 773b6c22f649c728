package publish

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A sender sends one message at a time. It keeps its room from one to the next.
type sender struct {
	p              *Publisher
	url, body, out []byte
	request        http.Request // for the reader of answers, which asks for its method
}

// send sends the next message of a topic and waits for its answer.
func (s *sender) send(topic int) {
	p := s.p
	sent := p.now()
	number := p.log.Begin(topic, sent)
	v := service.Values{Base: p.c.Base, Topic: p.c.Topics[topic], Run: p.c.Run(topic), Token: p.c.Token, Padding: p.c.Padding, Seq: int64(number), SentAt: sent} //nolint:gosec // G115: counts the messages of one run
	p.settle(topic, number, s.exchange(&v))
}

// exchange sends one message once, whatever happens to its connection.
func (s *sender) exchange(v *service.Values) shard.Outcome {
	p := s.p
	deadline := time.Now().Add(p.c.Timeout)
	s.url = p.c.Service.Publish.URL.Append(s.url[:0], v)
	origin, _ := split(s.url)
	for {
		c, reused, err := p.pool.get(p.ctx, origin, deadline)
		if err != nil {
			return shard.Outcome{State: shard.Refused, SentUS: v.SentAt, AtUS: p.now(), Text: "no connection: " + p.why(err)}
		}
		v.SentAt = p.now()
		if n, err := c.Write(s.write(v, c.origin)); err != nil {
			p.pool.drop(c)
			if n == 0 && reused && !p.pool.isClosed() { // closed while it was idle: nothing has left
				continue
			}
			return p.unanswered(c, v.SentAt, err)
		}
		return s.read(c, v.SentAt)
	}
}

// unanswered returns the outcome of a message whose connection failed after it was sent.
func (p *Publisher) unanswered(c *conn, sentUS int64, err error) shard.Outcome {
	o := shard.Outcome{State: shard.Open, SentUS: sentUS, AtUS: p.now(), Text: p.why(err)}
	if c.closedIdle(err, time.Duration(o.AtUS-sentUS)*time.Microsecond) && !p.pool.isClosed() {
		o.Idle = true
		o.Text += fmt.Sprintf("; the connection had been idle for %s, so the service may have closed it as idle while the message was being sent", c.idle.Round(time.Millisecond))
	}
	return o
}

// why is an error in words.
func (p *Publisher) why(err error) string {
	var late net.Error
	var proxied *proxy.Error
	isProxy := errors.As(err, &proxied)
	switch {
	case p.pool.isClosed():
		return errClosed.Error()
	case errors.As(err, &late) && late.Timeout() && isProxy:
		return fmt.Sprintf("nothing came within %[2]s from the proxy %[1]s", proxied.Proxy, p.c.Timeout)
	case isProxy:
	case errors.As(err, &late) && late.Timeout():
		return fmt.Sprintf("nothing came within %s", p.c.Timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before the answer"
	}
	return err.Error()
}

// split cuts a URL into its origin and the rest.
func split(text []byte) (origin, target []byte) {
	begin := bytes.Index(text, []byte("://")) + len("://")
	if end := bytes.IndexAny(text[begin:], "/?"); end >= 0 {
		return text[:begin+end], text[begin+end:]
	}
	return text, nil
}

// write is the request, whole, as its server or a proxy wants it: it leaves in one packet.
func (s *sender) write(v *service.Values, to *origin) []byte {
	r := s.p.c.Service.Publish
	s.url = r.URL.Append(s.url[:0], v) // the time may be in it
	origin, target := split(s.url)
	host := origin[bytes.Index(origin, []byte("://"))+len("://"):]
	user, host := cutUser(host)
	out := append(append(s.out[:0], r.Method...), ' ')
	if !to.direct {
		out = append(append(out, "http://"...), host...)
	}
	if len(target) == 0 || target[0] == '?' {
		out = append(out, '/')
	}
	out = append(append(out, target...), " HTTP/1.1\r\nHost: "...)
	out = append(append(out, host...), "\r\nUser-Agent: sse-soak\r\n"...)
	out = append(out, to.extra...)
	for i := range r.Headers {
		h := &r.Headers[i]
		if h.Omitted(v) {
			continue
		}
		if strings.EqualFold(h.Name, "Authorization") {
			user = nil
		}
		out = append(append(out, h.Name...), ": "...)
		out = append(h.Value.Append(out, v), "\r\n"...)
	}
	if user != nil {
		out = append(out, "Authorization: Basic "...)
		out = append(base64.StdEncoding.AppendEncode(out, user), "\r\n"...)
	}
	s.body = r.Body.Append(s.body[:0], v)
	if len(s.body) > 0 || r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch {
		out = append(out, "Content-Length: "...)
		out = append(strconv.AppendInt(out, int64(len(s.body)), 10), "\r\n"...)
	}
	s.out = append(append(out, "\r\n"...), s.body...)
	return s.out
}

// cutUser cuts user:password@ off a host.
func cutUser(host []byte) (user, rest []byte) {
	at := bytes.LastIndexByte(host, '@')
	if at < 0 {
		return nil, host
	}
	user = host[:at]
	if plain, err := url.PathUnescape(string(user)); err == nil {
		user = []byte(plain)
	}
	if !bytes.Contains(user, []byte(":")) {
		user = append(user[:len(user):len(user)], ':')
	}
	return user, host[at+1:]
}

const mostInterim = 10 // 1xx answers before the one that counts

// read reads the answer. What its head says counts, even if its body never ends.
func (s *sender) read(c *conn, sentUS int64) shard.Outcome {
	p := s.p
	s.request.Method = p.method
	var resp *http.Response
	for range mostInterim {
		var err error
		if resp, err = http.ReadResponse(c.in, &s.request); err != nil { // its body is closed by drain
			p.pool.drop(c)
			return p.unanswered(c, sentUS, err)
		}
		if resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols {
			break
		}
	}
	o := shard.Outcome{State: shard.Confirmed, SentUS: sentUS, AtUS: p.now()}
	accepted := p.c.Service.Publish.Accepts(resp.StatusCode)
	var body []byte
	if !accepted {
		o.State, o.Status = shard.Refused, uint16(min(resp.StatusCode, 999)) //nolint:gosec // G115: net/http reads three digits
		body, _ = bufio.NewReader(resp.Body).Peek(mostSaid)                  // what there is of it
		o.Text = p.describe(resp, body, c.origin.through)
	}
	_, err := io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	o.BodyUS = p.now() - o.AtUS
	if err != nil || resp.Close || resp.StatusCode < http.StatusOK {
		p.pool.drop(c)
	} else {
		p.pool.put(c, resp.Header)
	}
	return o
}

const mostSaid = 1 << 10

// describe says why a message was refused: the status, the proxy, which may be who says so, where a redirect leads to, and
// the first line of the body. A service may say the token back.
func (p *Publisher) describe(resp *http.Response, body []byte, through *proxy.Proxy) string {
	text := resp.Status + through.Through()
	if location := resp.Header.Get("Location"); location != "" {
		text += ", to " + location + ", which is not followed"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if line = clean(line); line != "" {
		text += ": " + line
	}
	return clean(secret.Hide(text, p.c.Token))
}

// clean takes control characters out of what a service said.
func clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text))
}
