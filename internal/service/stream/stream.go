// Package stream reads single event streams outside of k6: what the probe looks at, and the trial before a load. It
// is made for a handful of streams; the load has k6/sse.
//
// It connects as k6/sse does (HTTP/1.1, a connection for each stream, the same proxies), heeds K6_INSECURE_SKIP_TLS_VERIFY,
// and asks for no compression by itself.
package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// Stream is one answer to a request for an event stream, whatever its status. It is for one goroutine, Bytes and
// Close for any.
type Stream struct {
	Status      int
	Header      http.Header
	RequestedAt time.Time     // when the request was made
	ToHeaders   time.Duration // from then to the head of the answer

	request  Request
	response *http.Response
	ctx      context.Context //nolint:containedctx // of the stream's lifetime
	cancel   context.CancelFunc
	raw      countingReader
	parser   *eventstream.Parser
}

// A countingReader counts the bytes that it reads, as they arrive over the wire.
type countingReader struct {
	io.Reader
	n        atomic.Int64
	lastRead atomic.Pointer[time.Time] // when the last ones came; nil: none has
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if n > 0 {
		now := time.Now()
		c.n.Add(int64(n))
		c.lastRead.Store(&now)
	}
	return n, err
}

// Open makes the request and returns when the head of the answer is there. The stream ends with ctx.
func Open(ctx context.Context, r Request) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{RequestedAt: time.Now(), ctx: ctx, cancel: cancel}
	if r.Header = r.Header.Clone(); r.Header == nil {
		r.Header = http.Header{}
	}
	if r.Header.Get("Cache-Control") == "" {
		r.Header.Set("Cache-Control", "no-cache")
	}
	response, err := r.exchange(ctx, "text/event-stream", false) //nolint:bodyclose // by Close
	if err != nil {
		cancel()
		return nil, err
	}
	s.ToHeaders = time.Since(s.RequestedAt)
	s.Status, s.Header, s.request, s.response = response.StatusCode, response.Header, r, response
	s.raw.Reader = response.Body
	return s, nil
}

// IsEventStream reports whether the answer is one: 200 and text/event-stream.
func (s *Stream) IsEventStream() bool {
	kind, _, _ := mime.ParseMediaType(s.Header.Get("Content-Type"))
	return s.Status == http.StatusOK && kind == "text/event-stream"
}

// Packed is how the body is compressed, "" where it is not.
func (s *Stream) Packed() string { return coding.Name(s.Header.Values("Content-Encoding")...) }

// unpacked is the body without that.
func (s *Stream) unpacked() (io.Reader, error) {
	if packed := s.Packed(); packed != "" {
		return coding.New(packed, &s.raw) //nolint:wrapcheck // says all
	}
	return &s.raw, nil
}

// Origin is that of the answer, after redirects.
func (s *Stream) Origin() string { return sseclient.Origin(s.response.Request.URL) }

// Refusal is the beginning of the body of an answer that is no stream, in one line.
func (s *Stream) Refusal() string {
	stop := time.AfterFunc(2*time.Second, s.Close) // it may be a stream after all
	defer stop.Stop()
	return s.request.beginning(s.response.Body)
}

// Bytes is how many have come of the body, as sent: compressed, where it is.
func (s *Stream) Bytes() int64 { return s.raw.n.Load() }

// LastArrival is when the last bytes of the body came, whether they are part of anything or not; not ok where none has.
func (s *Stream) LastArrival() (at time.Time, ok bool) {
	if last := s.raw.lastRead.Load(); last != nil {
		return *last, true
	}
	return at, false
}

// Part is a block, or one comment line of a block that has not ended yet: its comments come again with the block.
// Its slices are the caller's.
type Part struct {
	service.Block
	At   time.Time // when it came
	Line bool      // a comment line
}

// Next waits for the next part. The error at the end of the stream is io.EOF if the server ended it after a block,
// io.ErrUnexpectedEOF if it was truncated, context.Canceled if ctx ended or Close was called.
func (s *Stream) Next() (Part, error) {
	if s.parser == nil {
		body, err := s.unpacked()
		if err != nil {
			return Part{}, err
		}
		s.parser = new(eventstream.Parser)
		s.parser.Reset(body, s.request.MaxEventSize)
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

// LastEventID returns the id that a stream sends to continue this one.
func (s *Stream) LastEventID() string {
	if s.parser == nil {
		return ""
	}
	return string(s.parser.LastEventID())
}

// Context ends when the stream does by Close, or by the context that it was opened with.
func (s *Stream) Context() context.Context { return s.ctx }

// Close ends the stream. A Next that waits returns context.Canceled.
func (s *Stream) Close() {
	s.cancel()
	_ = s.response.Body.Close()
}

// EndInWords describes the end of a stream, by the error of Next.
func EndInWords(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "it was closed here"
	case errors.Is(err, io.EOF):
		return "the service ended it"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it was cut off"
	case errors.Is(err, eventstream.ErrTooLong):
		return fmt.Sprintf("%v; set connect.maxEventSize to a larger one", err)
	}
	return fmt.Sprintf("it broke: %v", inner(err))
}
