package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

func (t *trial) heartbeat(ctx context.Context) error {
	return t.awaitRegular(ctx, t.s.HeartbeatEvery, "heartbeat", "heartbeat", func(p stream.Part) bool {
		return t.reader.Read(&p.Block).Kind == service.Heartbeat
	})
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
