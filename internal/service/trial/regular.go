package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// heartbeat waits for one, where they are frequent.
func (t *trial) heartbeat(ctx context.Context) error {
	return t.regular(ctx, t.s.HeartbeatEvery, "heartbeat", "none", func(p stream.Part) bool {
		return t.reader.Read(&p.Block).Kind == service.Heartbeat
	})
}

// due waits for a message that comes by itself, where they are frequent.
func (t *trial) due(ctx context.Context) error {
	if t.s.Publish != nil {
		return nil
	}
	reader := t.s.Reader("")
	var wrong error
	err := t.regular(ctx, t.s.Message.Interval, "message.every", "no message", func(p stream.Part) bool {
		r := reader.Read(&p.Block)
		if p.Line || r.Kind != service.Delivery {
			return false
		}
		wrong = t.misread(p, r, nil)
		return true
	})
	if err != nil {
		return err
	}
	return wrong
}

// regular waits for what arrives at an interval, unless it arrived already. field names the interval, none the error
// without an arrival.
func (t *trial) regular(ctx context.Context, every time.Duration, field, none string, is func(stream.Part) bool) error {
	if every == 0 || every > longestBeat || slices.ContainsFunc(t.open.came, is) {
		return nil
	}
	wait := every + grace
	err := t.open.await(ctx, time.Until(t.began.Add(wait)), is)
	switch {
	case errors.Is(err, errLate):
		return fmt.Errorf("%s, but %s came within %s: %s", t.field(field), none, seconds(wait), t.open.seen())
	case err != nil:
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}
