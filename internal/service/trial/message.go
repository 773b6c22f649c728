package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// attempts is the maximum number of times that the message is published. A service may need time to subscribe a stream.
const attempts = 3

// number is the number of the published message. It is over 1000, because a counter of the service may start at 1.
const number = 1009

func (t *trial) publish(ctx context.Context) error {
	p := t.s.Publish
	if p == nil {
		return nil
	}
	v := t.values
	v.Token = t.PublishToken
	v.SentAt = time.Now().UnixMicro()
	t.sent = append(t.sent, v.SentAt)
	return t.request(ctx, "publish", p, v, func() string {
		switch {
		case !p.Uses(service.Token):
			return "if the service requires a token, add a header with {token} and set PUBLISH_TOKEN"
		case t.PublishToken == "":
			return "set PUBLISH_TOKEN"
		}
		return "check that PUBLISH_TOKEN is valid for this topic"
	})
}

// message publishes the message until it arrives as the description defines, up to attempts times.
func (t *trial) message(ctx context.Context) error {
	if t.s.Publish == nil {
		return nil
	}
	var invalid error
	judge := func(p stream.Part) bool {
		var isMessage bool
		isMessage, invalid = t.judge(p)
		return isMessage
	}
	err := errLate
	for attempt := range attempts {
		if attempt > 0 || len(t.sent) == 0 { // otherwise openPublishing has already published it
			if err := t.publish(ctx); err != nil {
				return err
			}
		}
		if err = t.open.await(ctx, t.Patience/attempts, judge); !errors.Is(err, errLate) || t.mismatch != nil {
			break
		}
	}
	t.waitStart = time.Now()
	switch {
	case err == nil:
		return invalid
	case t.mismatch != nil:
		return t.mismatch
	case errors.Is(err, errLate):
		remedy := "check that both requests use the topic " + t.Topic
		if coding := t.open.stream.Coding(); coding != "" {
			remedy += fmt.Sprintf("; the service or a proxy may buffer compressed data (%s), so try ACCEPT_ENCODING=none", coding)
		}
		return fmt.Errorf("publish.url: %s was confirmed, but the message did not arrive at %s within %s: %s; %s",
			stream.Fill(t.s.Publish, &t.values), stream.Fill(&t.s.Connect, &t.values), format.Duration(t.Patience), t.open.summary(), remedy)
	}
	return fmt.Errorf("connect.url: %w", err)
}

// judge reports whether a part is the trial's message, and returns the mismatch of its values. If it is uncertain
// whether the part is the message, judge stores the mismatch in t.mismatch, because the message may still follow.
func (t *trial) judge(p stream.Part) (isMessage bool, invalid error) {
	if p.Line {
		return false, nil
	}
	r := t.reader.Read(&p.Block)
	hasMarker := slices.ContainsFunc([][]byte{p.Event, p.ID, p.Data, p.Comment}, func(field []byte) bool {
		return bytes.Contains(field, []byte(t.marker))
	})
	switch {
	case r.Kind != service.Delivery && hasMarker:
		t.mismatch = t.explainKind(p, r.Kind)
		return false, nil
	case r.Kind != service.Delivery:
		return false, nil
	case !t.s.Message.Marked && !hasMarker && (r.Err != nil || r.HasSeq && r.Seq != number):
		t.mismatch = t.checkReading(p, r) // the message may also be from another publisher
		return false, nil                 //nolint:nilerr // t.mismatch states the error
	}
	return true, t.checkReading(p, r)
}

func (t *trial) explainKind(p stream.Part, kind service.Kind) error {
	switch {
	case kind == service.Heartbeat:
		return fmt.Errorf("%s, but the received message matches it: %s", t.field("heartbeat"), t.quote(p))
	case kind == service.Gap:
		return fmt.Errorf("%s, but the received message matches it: %s", t.field("resume.gap"), t.quote(p))
	case !t.s.Message.HasName(p.Event):
		return fmt.Errorf("%s, but the received message has the event %q: %s", t.field("message.event"), p.EventName(), t.quote(p))
	case t.s.SecondRequest != nil && t.s.SecondRequest.Event == p.EventName():
		return fmt.Errorf("%s, but the received message has that event too: %s", t.field("connect.then.event"), t.quote(p))
	case kind == service.Foreign:
		return fmt.Errorf("%s, but the received message does not have the run's marker there: %s", t.field("message.run"), t.quote(p))
	}
	return fmt.Errorf("%s, but the received message has no such value: %s", t.field("message.run"), t.quote(p))
}

// checkReading returns the mismatch between a message and the description, or nil.
func (t *trial) checkReading(p stream.Part, r service.Reading) error {
	switch {
	case errors.Is(r.Err, service.ErrData):
		return fmt.Errorf("%s, but the received message has other data: %s", t.field("message.data"), t.quote(p))
	case errors.Is(r.Err, service.ErrJSON):
		return fmt.Errorf("%s, but the data of the received message is not JSON: %s", t.field(t.jsonField()), t.quote(p))
	case errors.Is(r.Err, service.ErrMarker):
		return fmt.Errorf("%s, but the received message does not have the run's marker there: %s", t.field("message.run"), t.quote(p))
	case errors.Is(r.Err, service.ErrMissing), errors.Is(r.Err, service.ErrSum) && !r.HasSeq:
		return fmt.Errorf("%s, but the received message has no such value: %s", t.field("message.seq"), t.quote(p))
	case errors.Is(r.Err, service.ErrNumber):
		return fmt.Errorf("%s, but the received message has no whole number of at least 0 there: %s", t.field("message.seq"), t.quote(p))
	case r.Err != nil && !errors.Is(r.Err, service.ErrSum):
		return fmt.Errorf("message: %w: %s", r.Err, t.quote(p))
	case t.s.Publish != nil && r.HasSeq && r.Seq != number:
		return fmt.Errorf("%s, but the message that was published with the number %d has %d there: %s", t.field("message.seq"), number, r.Seq, t.quote(p))
	case t.s.Message.Timed && !r.HasSentAt:
		return fmt.Errorf("%s, but the received message has no time there: %s", t.field("message.sentAt"), t.quote(p))
	case t.s.Publish.Uses(service.SentAt) && t.s.Message.Timed && !slices.ContainsFunc(t.sent, func(at int64) bool { return max(at-r.SentAt, r.SentAt-at) < 1e6 }):
		return fmt.Errorf("%s, but the time there is not the time with which the message was published: %s", t.field("message.sentAt"), t.quote(p))
	case r.Err != nil: // the number and the time are valid
		return fmt.Errorf("%s, but the received message has no checksum there, or the checksum of another number or time: %s", t.field("message.sum"), t.quote(p))
	}
	return nil
}

// jsonField returns the name of a field that the description reads from the JSON of a message.
func (t *trial) jsonField() string {
	for _, name := range []string{"message.seq", "message.run", "message.sentAt", "message.sum", "message.same"} {
		if strings.HasPrefix(t.s.Source(name), `"json:`) {
			return name
		}
	}
	return "resume.id"
}

// regularMessage waits for a message of a service that sends messages by itself, and checks its values.
func (t *trial) regularMessage(ctx context.Context) error {
	if t.s.Publish != nil {
		return nil
	}
	reader := t.s.Reader("")
	var invalid error
	err := t.awaitRegular(ctx, t.s.Message.Interval, "message.every", "message", func(p stream.Part) bool {
		r := reader.Read(&p.Block)
		if p.Line || r.Kind != service.Delivery {
			return false
		}
		invalid = t.checkReading(p, r)
		return true
	})
	if err != nil {
		return err
	}
	return invalid
}

// awaitRegular waits for a part that arrives at regular intervals. It does not wait if such a part has already arrived,
// or if the interval is 0 or exceeds maxInterval. Its error names the field of the interval and the kind of part.
func (t *trial) awaitRegular(ctx context.Context, interval time.Duration, field, kind string, matches func(stream.Part) bool) error {
	if interval == 0 || interval > maxInterval || slices.ContainsFunc(t.open.received, matches) {
		return nil
	}
	wait := interval + grace
	err := t.open.await(ctx, time.Until(t.waitStart.Add(wait)), matches)
	switch {
	case errors.Is(err, errLate):
		return fmt.Errorf("%s, but no %s arrived within %s: %s", t.field(field), kind, format.Duration(wait), t.open.summary())
	case err != nil:
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}
