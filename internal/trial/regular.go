package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/stream"
)

// replay sees whether a new stream brings the trial's message again. Without a marker in it, that would be counted
// as one of the run.
func (t *trial) replay(ctx context.Context) error {
	if t.s.Publish == nil || t.s.Message.Marked || t.s.Then != nil {
		return nil
	}
	other := t.values
	other.ID += "-again" // a service may refuse a second stream of one id, or end the first for it
	again, err := openWithin(ctx, t.Patience, stream.Fill(&t.s.Connect, &other))
	if err != nil {
		return fmt.Errorf("connect.url: %w", err)
	}
	f := follow(again, t.quote)
	defer f.close()
	err = f.await(ctx, t.Patience/10, func(p stream.Part) bool {
		r := t.reader.Read(&p.Block)
		return !p.Line && r.Kind == service.Delivery && r.HasSeq && r.Seq == 1
	})
	if err == nil {
		return fmt.Errorf("message.run is left out, and a new stream brings messages that were published before it: those of another run cannot be told from this one's (%s)", f.seen())
	}
	return nil
}

// heartbeat waits for one, where they are frequent.
func (t *trial) heartbeat(ctx context.Context) error {
	if t.s.HeartbeatEvery == 0 || t.s.HeartbeatEvery > longestBeat {
		return nil
	}
	is := func(p stream.Part) bool { return t.reader.Read(&p.Block).Kind == service.Heartbeat }
	for _, p := range t.open.came {
		if is(p) {
			return nil
		}
	}
	wait := t.s.HeartbeatEvery + grace
	switch err := t.open.await(ctx, time.Until(t.began.Add(wait)), is); {
	case err == nil:
		return nil
	case errors.Is(err, errLate):
		return fmt.Errorf("%s, but none came within %s: %s", t.field("heartbeat"), seconds(wait), t.open.seen())
	default:
		return fmt.Errorf("heartbeat: %w", err)
	}
}

// due waits for a message that comes by itself, where they are frequent.
func (t *trial) due(ctx context.Context) error {
	every := t.s.Message.Interval
	if t.s.Publish != nil || every == 0 || every > longestBeat {
		return nil
	}
	reader := t.s.Reader("")
	var wrong error
	is := func(p stream.Part) bool {
		r := reader.Read(&p.Block)
		if p.Line || r.Kind != service.Delivery {
			return false
		}
		wrong = t.misread(p, r, nil)
		return true
	}
	for _, p := range t.open.came {
		if is(p) {
			return wrong
		}
	}
	wait := every + grace
	switch err := t.open.await(ctx, time.Until(t.began.Add(wait)), is); {
	case err == nil:
		return wrong
	case errors.Is(err, errLate):
		return fmt.Errorf("%s, but no message came within %s: %s", t.field("message.every"), seconds(wait), t.open.seen())
	default:
		return fmt.Errorf("message.every: %w", err)
	}
}
