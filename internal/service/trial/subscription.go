package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// errLate reports that the expected part did not arrive in time.
var errLate = errors.New("it did not come in time")

// A subscription is a stream that is read continuously. It keeps the received parts.
type subscription struct {
	stream   *stream.Stream
	parts    chan stream.Part
	ended    error // how, when parts is closed
	received []stream.Part
	quote    func(stream.Part) string
}

// maxBlocks limits the queue of parts and the parts that are stored: a topic may have other traffic.
const maxBlocks = 1000

func follow(s *stream.Stream, quote func(stream.Part) string) *subscription {
	f := &subscription{stream: s, quote: quote, parts: make(chan stream.Part, maxBlocks)}
	go func() {
		defer close(f.parts)
		for {
			p, err := s.Next()
			if err != nil {
				f.ended = err
				return
			}
			select {
			case f.parts <- p:
			case <-s.Context().Done():
				f.ended = context.Canceled
				return
			}
		}
	}()
	return f
}

func (f *subscription) close() {
	f.stream.Close()
	for range f.parts { //nolint:revive // until the reader has ended
	}
}

// await waits for the first part that wanted accepts. The error is errLate, the end of the stream, or that of ctx.
func (f *subscription) await(ctx context.Context, patience time.Duration, wanted func(stream.Part) bool) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case p, more := <-f.parts:
			if !more {
				return fmt.Errorf("the stream was over %s after it was opened: %s", seconds(time.Since(f.stream.RequestedAt)), stream.EndInWords(f.ended))
			}
			if f.received = append(f.received, p); len(f.received) > maxBlocks {
				f.received = f.received[1:]
			}
			if wanted(p) {
				return nil
			}
		case <-late.C:
			return errLate
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller's own
		}
	}
}

// last quotes the last part of a kind.
func (f *subscription) last(kind func(stream.Part) bool) string {
	for i := len(f.received) - 1; i >= 0; i-- {
		if kind(f.received[i]) {
			return f.quote(f.received[i])
		}
	}
	return ""
}

// summary describes what arrived on the stream.
func (f *subscription) summary() string {
	n := 0
	for _, p := range f.received {
		if !p.Line {
			n++
		}
	}
	switch last := f.last(func(p stream.Part) bool { return !p.Line }); {
	case n == 1:
		return "another block came, with " + last
	case n > 0:
		return fmt.Sprintf("%d other blocks came, the last one with %s", n, last)
	case len(f.received) > 0:
		return "nothing came but comments"
	}
	return "nothing came"
}
