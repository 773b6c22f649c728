// Package trial checks a service description against its service before the load. It opens a stream, or requests one
// response that ends by itself, and publishes a message if the description has publish. An error is one sentence that
// names a field of the description, unless the context ended.
package trial

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

const defaultTimeout = 10 * time.Second

// A trial waits for heartbeats, and for messages that the service sends by itself, if their interval is at most
// maxInterval. It waits for the interval plus grace.
const (
	maxInterval = 5 * time.Second
	grace       = 2 * time.Second
)

// A Config configures a trial.
type Config struct {
	Service *service.Service
	Base    string // URL of the service
	Topic   string // topic of the first stream of the run
	ID      string // id of the trial's stream; no stream of the run has it
	Padding string // padding of the run's messages
	Prompt  string // prompt of the request that Answer sends
	// Marker is the marker of the run. The trial adds a random suffix, because trials of several machines publish to the
	// same topic.
	Marker string

	SubscribeToken string // value of the variable that Service.Variable names
	CustomToken    bool   // token() returns a value other than SUBSCRIBE_TOKEN; only a script can compute it
	PublishToken   string
	HTTPVersion    string // HTTP version of requests: 1.1 or 2; with "", the server chooses
	AcceptEncoding string // Accept-Encoding of streams if the description has none; "" means no header

	FollowRedirects bool // streams follow redirects to other origins
	// Dial opens a connection. nil means the dialer of package net.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Patience time.Duration // time limit for headers, a message or the end of a response; 0 means 10 s
	Note     func(string)  // receives sentences about untried parts, and about a missing terminal event; may be nil
}

// ErrNoResponse is the cause of the error of Run, Answer and Connect if no headers arrive in time.
var ErrNoResponse = stream.ErrNoResponse

// A Mismatch is an error of a trial about one field of the description.
type Mismatch struct {
	Field string
	Err   error
}

func (m *Mismatch) Error() string { return m.Field + ": " + m.Err.Error() }
func (m *Mismatch) Unwrap() error { return m.Err }

// Run checks the description with a stream. The error is a sentence for the user, unless ctx ended.
func Run(ctx context.Context, c Config) error {
	return start(ctx, c, (*trial).run)
}

// Connect opens a stream and closes it. It returns the same errors as Run.
func Connect(ctx context.Context, c Config) error {
	return start(ctx, c, (*trial).connect)
}

func start(ctx context.Context, c Config, run func(*trial, context.Context) error) error {
	if c.Patience == 0 {
		c.Patience = defaultTimeout
	}
	if c.Note == nil {
		c.Note = func(string) {}
	}
	t := &trial{Config: c, s: c.Service, marker: c.Marker + "-trial-" + rand.Text()[:6]}
	t.reader = t.s.Reader(t.marker)
	t.values = service.Values{Base: strings.TrimRight(c.Base, "/"), Topic: c.Topic, ID: c.ID, Run: t.marker, Token: c.SubscribeToken, Padding: c.Padding, Seq: number}
	t.client = stream.Client{Timeout: c.Patience, Dial: c.Dial, HTTPVersion: c.HTTPVersion, FollowRedirects: c.FollowRedirects}
	err := run(t, ctx)
	if t.open != nil {
		t.open.close()
	}
	if ctx.Err() != nil {
		return ctx.Err() //nolint:wrapcheck // the caller's context
	}
	return err
}

type trial struct {
	Config
	s         *service.Service
	client    stream.Client
	marker    string
	values    service.Values
	reader    *service.Reader
	open      *subscription
	waitStart time.Time // start of the waits in awaitRegular: when the stream opened, or when the message arrived
	// lateHeaders reports whether the headers of the stream took more than a tenth of Patience. The service may send them
	// with the first event.
	lateHeaders bool
	sent        []int64 // times at which the message was published, in microseconds since 1970
	mismatch    error   // error of a block that may be the message; reported if no matching block arrives
}

// run tests the stream, a message, heartbeats and the end. If only a script can open the stream, run only publishes.
func (t *trial) run(ctx context.Context) error {
	reason := ""
	switch {
	case t.s.HasURL:
		reason = "url(n) is a function"
	case t.CustomToken && t.SubscribeToken == "":
		reason = "token() does not return SUBSCRIBE_TOKEN"
	}
	if reason != "" {
		t.Note(reason + ": no stream was opened before the load")
		return t.publish(ctx)
	}
	if err := t.connect(ctx); err != nil {
		return err
	}
	if err := t.secondRequest(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{t.message, t.replay, t.heartbeat, t.regularMessage, t.end} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// field returns the name and the value of a field of the description, as the start of a sentence.
func (t *trial) field(name string) string {
	if source := t.s.Source(name); source != "" {
		return name + " is " + format.Shorten(source, 120)
	}
	return name + " is not set"
}

func (t *trial) subscribe(v *service.Values) stream.Request {
	r := stream.Fill(&t.s.Connect, v)
	r.MaxEventSize = t.s.MaxEventSize
	r.AcceptEncoding = t.AcceptEncoding
	return r
}

// connect opens the stream, and checks the status, the type and the coding of the response.
func (t *trial) connect(ctx context.Context) error {
	r := t.subscribe(&t.values)
	answer, err := t.openPublishing(ctx, r)
	if err != nil {
		return err
	}
	if coding := answer.Coding(); answer.IsEventStream() && coding != "" && !r.Accepts(coding) {
		answer.Close()
		return mismatch("connect.url", "%s answered with the Content-Encoding %q, which the request does not accept; set ACCEPT_ENCODING, or disable compression in the service or its proxy", r, coding)
	}
	if answer.IsEventStream() {
		t.open = follow(answer, t.quote)
		t.waitStart = time.Now()
		return nil
	}
	defer answer.Close()
	switch answer.Status {
	case http.StatusOK:
		return mismatch("connect.url", "%s answered 200 with %s%s, which is not an event stream; set connect.url to the URL of an event stream",
			r, cmp.Or(answer.Header.Get("Content-Type"), "no Content-Type"), stream.InParentheses(answer.Excerpt()))
	case http.StatusUnauthorized, http.StatusForbidden:
		return mismatch("connect.headers", "%s answered %s%s; %s", r, http1.StatusText(answer.Status), stream.InParentheses(answer.Excerpt()), t.subscribeRemedy())
	}
	return mismatch("connect.url", "%s answered %s%s", r, http1.StatusText(answer.Status), stream.InParentheses(answer.Excerpt()))
}

func mismatch(field, format string, args ...any) error {
	return &Mismatch{Field: field, Err: fmt.Errorf(format, args...)}
}

// openPublishing opens a stream. A service may delay the headers until the first event. So, after a tenth of Patience
// without headers, openPublishing publishes the message, unless the description has connect.then.
func (t *trial) openPublishing(ctx context.Context, r stream.Request) (*stream.Stream, error) {
	published := make(chan error, 1)
	late := time.AfterFunc(t.Patience/10, func() {
		if t.s.SecondRequest != nil { // the service sends the first event by itself
			published <- nil
			return
		}
		published <- t.publish(ctx)
	})
	answer, err := t.client.Open(ctx, r)
	if err != nil {
		err = &Mismatch{Field: "connect.url", Err: err}
	}
	if late.Stop() {
		return answer, err
	}
	t.lateHeaders = true
	publishErr := <-published
	switch {
	case publishErr != nil && err != nil:
		return nil, fmt.Errorf("%w; %w", err, publishErr)
	case publishErr != nil:
		t.sent = nil // report a fault of the headers first; the message is published again later
	}
	return answer, err
}

func (t *trial) subscribeRemedy() string {
	switch {
	case !t.s.HasToken && t.s.TokenVariable == "":
		return "if the service requires a token, add token() and a header with {token}"
	case t.SubscribeToken == "":
		return "set " + t.s.Variable()
	}
	return "check that the token is valid for this topic"
}

func (t *trial) secondRequest(ctx context.Context) error {
	second := t.s.SecondRequest
	if second == nil {
		return nil
	}
	var client string
	hasEvent := false
	err := t.open.await(ctx, t.Patience, func(p stream.Part) bool {
		if p.Line || !p.HasData || p.EventName() != second.Event {
			return false
		}
		hasEvent = true
		var ok bool
		client, ok = t.s.Client(&p.Block)
		return ok || t.s.Source("connect.then.client") == ""
	})
	switch {
	case err == nil:
	case errors.Is(err, errLate) && hasEvent:
		return fmt.Errorf("%s, but the received event %q has no such value: %s", t.field("connect.then.client"), second.Event, t.open.last(func(p stream.Part) bool { return p.EventName() == second.Event }))
	case errors.Is(err, errLate):
		return fmt.Errorf("%s, but no such event arrived within %s: %s", t.field("connect.then.event"), format.Duration(t.Patience), t.open.summary())
	default:
		return fmt.Errorf("connect.then.event: %w", err)
	}
	v := t.values
	v.Client = client
	return t.request(ctx, "connect.then", &second.Request, v, t.subscribeRemedy)
}

// request sends a request of the description. A response that does not confirm it is an error.
func (t *trial) request(ctx context.Context, field string, request *service.Request, v service.Values, remedy func() string) error {
	r := stream.Fill(request, &v)
	r.NoRedirect = request == t.s.Publish || request == t.s.End.Request
	client := t.client
	if request == t.s.Publish {
		client.HTTPVersion = "1.1" // the only version that the publisher of a run uses
	}
	answer, err := client.Do(ctx, r)
	switch {
	case err != nil && request == t.s.Publish && t.open != nil && t.open.stream.Proto == "HTTP/2.0":
		return fmt.Errorf("%s.url: %w; a run publishes over HTTP/1.1, so make the service accept HTTP/1.1 too", field, err)
	case err != nil:
		return fmt.Errorf("%s.url: %w", field, err)
	case request.Accepts(answer.Status):
		return nil
	case answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden:
		return fmt.Errorf("%s: %s answered %s%s; %s", field, r, http1.StatusText(answer.Status), stream.InParentheses(answer.Body), remedy())
	case r.NoRedirect && answer.Status < 400 && answer.Header.Get("Location") != "":
		return fmt.Errorf("%[1]s.url: %[2]s answered %[3]s, to %[4]s, and a run does not follow this redirect; set %[1]s.url to the final URL, or add the status to %[1]s.ok if it confirms the request",
			field, r, http1.StatusText(answer.Status), format.Shorten(secret.Hide(answer.Header.Get("Location"), r.Secret()), 200))
	case answer.Status < 400:
		return fmt.Errorf("%s.ok: %s answered %s, which the description does not accept as confirmation: %s", field, r, http1.StatusText(answer.Status), t.field(field+".ok"))
	}
	return fmt.Errorf("%s: %s answered %s%s", field, r, http1.StatusText(answer.Status), stream.InParentheses(answer.Body))
}

func (t *trial) end(ctx context.Context) error {
	if t.s.End.By != service.ByRequest {
		return nil
	}
	if err := t.request(ctx, "end", t.s.End.Request, t.values, t.subscribeRemedy); err != nil {
		return err
	}
	err := t.open.await(ctx, t.Patience, func(stream.Part) bool { return false })
	if errors.Is(err, errLate) {
		return fmt.Errorf("end.url: the request was confirmed, but the stream was still open %s later", format.Duration(t.Patience))
	}
	return nil
}

// Answer sends one request whose response ends by itself, and reads the response to its terminal event. A response that
// ends without content is an error. A missing terminal event is only passed to Note, because the run checks for that
// event. Answer sends nothing if only a script can make the request. It returns the same errors as Run.
func Answer(ctx context.Context, c Config) error {
	return start(ctx, c, (*trial).answer)
}

func (t *trial) answer(ctx context.Context) error {
	if t.s.HasURL || t.s.HasBody || t.CustomToken && t.SubscribeToken == "" {
		t.Note("the description has functions: no request was sent before the load")
		return nil
	}
	t.values.Prompt = t.Prompt
	if err := t.connect(ctx); err != nil {
		return err
	}
	hasContent := false
	err := t.open.await(ctx, t.Patience, func(p stream.Part) bool {
		if p.Line {
			return false
		}
		c := t.s.ReadChunk(&p.Block)
		hasContent = hasContent || c.Content
		return c.Done || c.Failed
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err() //nolint:wrapcheck // the caller's context
	case !hasContent && err == nil:
		return mismatch("message.content", "the response had no content (%s): %s", t.field("message.content"), t.open.summary())
	case !hasContent && !errors.Is(err, errLate):
		return mismatch("message.content", "the response had no content (%s): %s, and %w", t.field("message.content"), t.open.summary(), err)
	case err != nil:
		if errors.Is(err, errLate) {
			err = fmt.Errorf("the stream was still open after %s", format.Duration(t.Patience))
		}
		t.Note(fmt.Sprintf("the trial's response had no terminal event (%s): %s; %s", t.field("end.done"), err, t.open.summary()))
	}
	return nil
}

// replay opens a new stream if messages have no marker. It returns an error if that stream receives the trial's message
// again, because a run would count such a message as its own.
func (t *trial) replay(ctx context.Context) error {
	if t.s.Publish == nil || t.s.Message.Marked || t.s.SecondRequest != nil {
		return nil
	}
	values := t.values
	values.ID += "-again" // a service may refuse a second stream with the same id, or end the first one
	second, err := t.client.Open(ctx, t.subscribe(&values))
	switch {
	case err != nil && ctx.Err() == nil && t.lateHeaders:
		return nil // the service sends no headers before the first event
	case err != nil:
		return fmt.Errorf("connect.url: %w", err)
	}
	f := follow(second, t.quote)
	defer f.close()
	err = f.await(ctx, t.Patience/10, func(p stream.Part) bool {
		r := t.reader.Read(&p.Block)
		return !p.Line && r.Kind == service.Delivery && r.HasSeq && r.Seq == number
	})
	if err == nil {
		return fmt.Errorf("message.run is not set, but a new stream receives earlier messages, so messages of other runs could be counted; add message.run (received again: %s)",
			f.last(func(p stream.Part) bool { return !p.Line }))
	}
	return nil
}

func (t *trial) heartbeat(ctx context.Context) error {
	return t.awaitRegular(ctx, t.s.HeartbeatEvery, "heartbeat", "heartbeat", func(p stream.Part) bool {
		return t.reader.Read(&p.Block).Kind == service.Heartbeat
	})
}
