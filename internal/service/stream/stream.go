package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A Stream is the response to a request for an event stream, with any status. One goroutine reads it; other goroutines
// may call Received and Close.
type Stream struct {
	*sseclient.Response
	RequestedAt time.Time

	request Request
	body    *sseclient.Body
	ctx     context.Context //nolint:containedctx // ends with the stream
	cancel  context.CancelFunc
	parser  *eventstream.Parser // nil before the first Next
}

// Excerpt returns the beginning of the body of a response that is not a stream, as one line. It closes the stream if
// reading takes longer than 2 s.
func (s *Stream) Excerpt() string {
	const maxLength = 300
	stop := time.AfterFunc(2*time.Second, s.Close) // the body may be endless
	defer stop.Stop()
	text, _ := io.ReadAll(io.LimitReader(s.body, 4*maxLength))
	return format.Shorten(secret.Hide(string(text), s.request.secret), maxLength)
}

// Received returns the number of bytes of the body that arrived, before decompression, and when the last one arrived.
func (s *Stream) Received() (n int64, at time.Time) { return s.body.Received() }

// A Part is a block, or one comment line of a block that has not ended. The block repeats its comments. The caller owns
// the slices of a Part.
type Part struct {
	service.Block
	At   time.Time // time of arrival
	Line bool      // a comment line
}

// Next waits for the next part. At the end of the stream it returns io.EOF if the server ended it after a block, and
// io.ErrUnexpectedEOF if it was truncated. It returns context.Canceled after Close, and after the end of the context of
// Open.
func (s *Stream) Next() (Part, error) {
	if s.parser == nil {
		s.parser = new(eventstream.Parser)
		s.parser.Reset(s.body, s.request.MaxEventSize)
	}
	var b eventstream.Block
	kind, err := s.parser.NextPart(&b)
	if err != nil {
		if s.ctx.Err() != nil {
			err = context.Canceled
		}
		return Part{}, err
	}
	part := Part{At: time.Now(), Line: kind == eventstream.CommentLine}
	part.Comment, part.HasComment = bytes.Clone(b.Comment), b.HasComment
	if !part.Line {
		part.Event, part.Data, part.HasData = bytes.Clone(b.Name), bytes.Clone(b.Data), b.HasData
		if part.HasID = b.HasID; b.HasID {
			part.ID = bytes.Clone(b.ID)
		}
	}
	return part, nil
}

// LastEventID returns the Last-Event-ID of a request that continues this stream.
func (s *Stream) LastEventID() string {
	if s.parser == nil {
		return ""
	}
	return string(s.parser.LastEventID())
}

// Context returns a context that ends with Close, or with the context of Open.
func (s *Stream) Context() context.Context { return s.ctx }

// Close ends the stream. A blocked Next returns context.Canceled.
func (s *Stream) Close() { s.cancel() }

// InParentheses returns a body in parentheses after a space, or "" if the body is empty.
func InParentheses(body string) string {
	if body == "" {
		return ""
	}
	return " (" + body + ")"
}

// EndInWords describes the end of a stream for an error of Next.
func EndInWords(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "the client closed it"
	case errors.Is(err, io.EOF):
		return "the service closed it"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the response was truncated"
	case errors.Is(err, eventstream.ErrTooLong):
		return err.Error() + "; set connect.maxEventSize to a larger value"
	}
	return withRemedy(err).Error()
}
