package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

var errLate = errors.New("timed out")

// A subscription reads a stream continuously, and keeps the received parts.
type subscription struct {
	stream   *stream.Stream
	parts    chan stream.Part
	endError error // reason for the end of the stream; valid when parts is closed
	received []stream.Part
	quote    func(stream.Part) string
}

// maxParts limits the queued parts and the stored parts, because a topic may have other traffic.
const maxParts = 1000

// follow starts to read a stream. The caller must close the subscription.
func follow(s *stream.Stream, quote func(stream.Part) string) *subscription {
	f := &subscription{stream: s, quote: quote, parts: make(chan stream.Part, maxParts)}
	go func() {
		defer close(f.parts)
		for {
			p, err := s.Next()
			if err != nil {
				f.endError = err
				return
			}
			select {
			case f.parts <- p:
			case <-s.Context().Done():
				f.endError = context.Canceled
				return
			}
		}
	}()
	return f
}

func (f *subscription) close() {
	f.stream.Close()
	for range f.parts { //nolint:revive // discards the rest
	}
}

// await waits for the first part for which matches returns true. It returns errLate after timeout, an error with
// the reason if the stream ends, or the error of ctx.
func (f *subscription) await(ctx context.Context, timeout time.Duration, matches func(stream.Part) bool) error {
	late := time.NewTimer(timeout)
	defer late.Stop()
	for {
		select {
		case p, open := <-f.parts:
			if !open {
				return fmt.Errorf("the stream ended %s after the request: %s", format.Duration(time.Since(f.stream.RequestedAt)), stream.EndInWords(f.endError))
			}
			if f.received = append(f.received, p); len(f.received) > maxParts {
				f.received = f.received[1:]
			}
			if matches(p) {
				return nil
			}
		case <-late.C:
			return errLate
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller's context
		}
	}
}

func (f *subscription) last(matches func(stream.Part) bool) string {
	for _, p := range slices.Backward(f.received) {
		if matches(p) {
			return f.quote(p)
		}
	}
	return ""
}

func (f *subscription) summary() string {
	n := 0
	for _, p := range f.received {
		if !p.Line {
			n++
		}
	}
	switch last := f.last(func(p stream.Part) bool { return !p.Line }); {
	case n == 1:
		return "one block arrived, with " + last
	case n > 0:
		return fmt.Sprintf("%d blocks arrived, the last one with %s", n, last)
	case len(f.received) > 0:
		return "only comments arrived"
	}
	return "nothing arrived"
}

func (t *trial) quote(p stream.Part) string {
	var parts []string
	add := func(name string, has bool, value []byte) {
		switch {
		case has && len(value) == 0:
			parts = append(parts, "empty "+name)
		case has:
			parts = append(parts, name+": "+format.Shorten(secret.Hide(string(value), t.SubscribeToken, t.PublishToken), 160))
		}
	}
	add("event", len(p.Event) > 0, p.Event)
	add("id", p.HasID, p.ID)
	add("data", p.HasData, p.Data)
	add("comment", p.HasComment, p.Comment)
	if len(parts) == 0 {
		return "no event, id, data or comment"
	}
	return strings.Join(parts, ", ")
}
