package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// attempts is the number of times that the message is published: a service may need some time until a stream is
// subscribed.
const attempts = 3

// publish publishes the trial's message, if the description has `publish`.
func (t *trial) publish(ctx context.Context) error {
	p := t.s.Publish
	if p == nil {
		return nil
	}
	v := t.values
	v.Token = t.PublishToken
	v.SentAt = time.Now().UnixMicro()
	t.sent = append(t.sent, v.SentAt)
	err := t.request(ctx, "publish", p, v, func() string {
		switch {
		case !p.Uses(service.Token):
			return "it sends no token: add a header with {token}, and set PUBLISH_TOKEN, if the service wants one"
		case t.PublishToken == "":
			return "set PUBLISH_TOKEN"
		}
		return "the service does not accept PUBLISH_TOKEN for this topic"
	})
	return err
}

// message publishes a message and waits for it, as the description defines it.
func (t *trial) message(ctx context.Context) error {
	if t.s.Publish == nil {
		return nil
	}
	var invalid error
	judge := func(p stream.Part) bool {
		var own bool
		own, invalid = t.judge(p, t.sent)
		return own
	}
	err := errLate
	for attempt := range attempts {
		if attempt > 0 || len(t.sent) == 0 { // otherwise openPublishing has published the first one
			if failed := t.publish(ctx); failed != nil {
				return failed
			}
		}
		if err = t.open.await(ctx, t.Patience/attempts, judge); !errors.Is(err, errLate) || t.mismatch != nil {
			break
		}
	}
	t.began = time.Now()
	switch {
	case err == nil:
		return invalid
	case t.mismatch != nil:
		return t.mismatch
	case errors.Is(err, errLate):
		reason := fmt.Sprintf("stream and publish request may have different topics (%s)", t.Topic)
		if packed := t.open.stream.Coding(); packed != "" {
			reason += fmt.Sprintf(", or the service or a proxy buffers compressed data (%s); try ACCEPT_ENCODING=none", packed)
		}
		return fmt.Errorf("publish.url: %s was confirmed, but the message did not arrive at %s within %s: %s; %s",
			stream.Fill(t.s.Publish, &t.values), stream.Fill(&t.s.Connect, &t.values), seconds(t.Patience), t.open.summary(), reason)
	}
	return fmt.Errorf("connect.url: %w", err)
}

// judge reports whether a part is the trial's message, and the mismatches. A part that may be the message is kept as
// a doubt: the message may follow.
func (t *trial) judge(p stream.Part, sent []int64) (isOurs bool, invalid error) {
	if p.Line {
		return false, nil
	}
	r := t.reader.Read(&p.Block)
	has := bytes.Contains(slices.Concat(p.Event, []byte{0}, p.ID, []byte{0}, p.Data, []byte{0}, p.Comment), []byte(t.marker))
	switch {
	case r.Kind != service.Delivery && has:
		t.mismatch = t.explainKind(p, r.Kind)
		return false, nil
	case r.Kind != service.Delivery:
		return false, nil
	case !t.s.Message.Marked && !has && (r.Err != nil || r.HasSeq && r.Seq != 1):
		t.mismatch = t.misread(p, r, sent) // or from another publisher
		return false, nil                  //nolint:nilerr // misread has it
	}
	return true, t.misread(p, r, sent)
}

// explainKind explains why our message is classified as something else.
func (t *trial) explainKind(p stream.Part, kind service.Kind) error {
	switch {
	case kind == service.Heartbeat:
		return fmt.Errorf("%s, but the received message matches it: %s", t.field("heartbeat"), t.quote(p))
	case kind == service.Gap:
		return fmt.Errorf("%s, but the received message matches it: %s", t.field("resume.gap"), t.quote(p))
	case !t.hasName(p):
		return fmt.Errorf("%s, but the received message has the event %q: %s", t.field("message.event"), p.EventName(), t.quote(p))
	case t.s.SecondRequest != nil && t.s.SecondRequest.Event == p.EventName():
		return fmt.Errorf("%s, but the received message has that event too: %s", t.field("connect.then.event"), t.quote(p))
	case kind == service.Foreign:
		return fmt.Errorf("%s, but the received message has another value than the run's marker there: %s", t.field("message.run"), t.quote(p))
	}
	return fmt.Errorf("%s, but the received message has no such value: %s", t.field("message.run"), t.quote(p))
}

// hasName reports whether a message may have that event.
func (t *trial) hasName(p stream.Part) bool {
	event := []byte(t.s.Source("message.event"))
	var one string
	var names []string
	if json.Unmarshal(event, &one) == nil {
		names = []string{one}
	} else if json.Unmarshal(event, &names) != nil {
		return true
	}
	return slices.Contains(names, p.EventName())
}

// misread describes the errors in the values that were read from our message.
func (t *trial) misread(p stream.Part, r service.Reading, sent []int64) error {
	switch {
	case errors.Is(r.Err, service.ErrData):
		return fmt.Errorf("%s, but the received message has other data: %s", t.field("message.data"), t.quote(p))
	case errors.Is(r.Err, service.ErrJSON):
		return fmt.Errorf("%s, but the data of the received message is not JSON: %s", t.field(t.inJSON()), t.quote(p))
	case errors.Is(r.Err, service.ErrMarker):
		return fmt.Errorf("%s, but the received message does not have the run's marker there: %s", t.field("message.run"), t.quote(p))
	case errors.Is(r.Err, service.ErrMissing), errors.Is(r.Err, service.ErrSum) && !r.HasSeq:
		return fmt.Errorf("%s, but the received message has no such value: %s", t.field("message.seq"), t.quote(p))
	case errors.Is(r.Err, service.ErrNumber):
		return fmt.Errorf("%s, but the received message has no whole number of at least 0 there: %s", t.field("message.seq"), t.quote(p))
	case r.Err != nil && !errors.Is(r.Err, service.ErrSum):
		return fmt.Errorf("message: %w: %s", r.Err, t.quote(p))
	case t.s.Publish != nil && r.HasSeq && r.Seq != 1:
		return fmt.Errorf("%s, and finds %d in the message that was published with the number 1: %s", t.field("message.seq"), r.Seq, t.quote(p))
	case t.s.Message.Timed && !r.HasSentAt:
		return fmt.Errorf("%s, but the received message has no time there: %s", t.field("message.sentAt"), t.quote(p))
	case t.sendsTime() && !slices.ContainsFunc(sent, func(at int64) bool { return max(at-r.SentAt, r.SentAt-at) < 1e6 }):
		return fmt.Errorf("%s, and finds another time in the message than the one that was published with it: %s", t.field("message.sentAt"), t.quote(p))
	case r.Err != nil: // and number and time are there
		return fmt.Errorf("%s, but the received message has no checksum there, or that of another number or time: %s", t.field("message.sum"), t.quote(p))
	}
	return nil
}

// inJSON returns the first field that requires the data to be JSON.
func (t *trial) inJSON() string {
	for _, name := range []string{"message.seq", "message.run", "message.sentAt"} {
		if strings.HasPrefix(t.s.Source(name), `"json:`) {
			return name
		}
	}
	return "resume.id"
}

// sendsTime reports whether the time in a message is the one that we sent.
func (t *trial) sendsTime() bool {
	p := t.s.Publish
	return p != nil && t.s.Message.Timed && p.Uses(service.SentAt)
}
