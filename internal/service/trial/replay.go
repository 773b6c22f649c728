package trial

import (
	"context"
	"fmt"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// replay returns an error if messages have no marker and a new stream receives the trial's message again. A run would
// count such a message as its own.
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
