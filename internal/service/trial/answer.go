package trial

import (
	"context"
	"errors"
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

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
		return mismatch("message.content", "the response had no content: %s; %s", t.open.summary(), t.field("message.content"))
	case !hasContent && !errors.Is(err, errLate):
		return mismatch("message.content", "the response had no content: %s; %w; %s", t.open.summary(), err, t.field("message.content"))
	case err != nil:
		if errors.Is(err, errLate) {
			err = fmt.Errorf("the stream was still open after %s", format.Duration(t.Patience))
		}
		t.Note(fmt.Sprintf("the trial's response had no terminal event (%s): %s; %s", t.field("end.done"), err, t.open.summary()))
	}
	return nil
}
