package probe

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

type role int

const (
	plain      role = iota // opened at the start, or in place of an ended stream
	compressed             // requests compression
	resumed                // resumes the disconnected stream
	fresh                  // opened at the same time as resumed, without an event ID
	unknown                // opened with an event ID that no event has
)

// A track records one stream of the probe: its request, and the parts that arrived.
type track struct {
	role     role
	n        int    // value of {n}
	encoding string // Accept-Encoding of the request
	sentID   string // Last-Event-ID of the request

	requestedAt, headersAt time.Time
	status                 int
	header                 map[string][]string
	err                    error  // error of the request
	isStopped              bool   // err is the result of a stopped probe
	refusal                string // beginning of the body if the response is not an event stream

	mu            sync.Mutex // guards the fields from here to bytes
	parts         []stream.Part
	size          int   // bytes of parts
	keepsLast     bool  // stores the last parts, not the first, if there are too many
	ended         error // reason for the end, or nil if the stream is open
	endedAt       time.Time
	closedByProbe bool
	bytes         int64 // received bytes of the body

	open *stream.Stream // nil: the request failed, or the response is not an event stream
	done chan struct{}  // closed when no goroutine reads the stream
}

const (
	maxParts = 5000
	maxBytes = 4 << 20
)

const maxQuoted = 1 << 10

// store adds a part. If the limits are exceeded, it drops the first parts if keepsLast is set, otherwise the new part.
func (t *track) store(p stream.Part) {
	t.parts, t.size = append(t.parts, p), t.size+sizeOf(p)
	for len(t.parts) > maxParts || t.size > maxBytes {
		if !t.keepsLast {
			t.parts, t.size = t.parts[:len(t.parts)-1], t.size-sizeOf(p)
			return
		}
		t.size -= sizeOf(t.parts[0])
		t.parts[0] = stream.Part{} // append copies the rest later
		t.parts = t.parts[1:]
	}
}

func sizeOf(p stream.Part) int { return len(p.Event) + len(p.ID) + len(p.Data) + len(p.Comment) }

// read reads a stream to its end and stores its parts without secrets. It passes each block, with its secrets, to
// onBlock, which may be nil.
func (t *track) read(secrets []string, onBlock func(stream.Part)) {
	defer close(t.done)
	for {
		p, err := t.open.Next()
		t.mu.Lock()
		if err != nil {
			t.ended, t.endedAt = err, time.Now()
			t.bytes, _ = t.open.Received()
			t.closedByProbe = errors.Is(err, context.Canceled)
			t.mu.Unlock()
			return
		}
		t.store(hideSecrets(p, secrets))
		t.mu.Unlock()
		if !p.Line && onBlock != nil {
			onBlock(p)
		}
	}
}

func hideSecrets(p stream.Part, secrets []string) stream.Part {
	for _, text := range []*[]byte{&p.Event, &p.ID, &p.Data, &p.Comment} {
		if len(*text) > 0 {
			*text = []byte(secret.Hide(string(*text), secrets...))
		}
	}
	return p
}

func (t *track) close() {
	if t == nil || t.open == nil {
		return
	}
	t.open.Close()
	<-t.done
}

func (t *track) endedByService() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended != nil && !t.closedByProbe
}

func (t *track) countSince(from time.Time) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.parts {
		if !p.Line && p.HasData && p.At.After(from) {
			n++
		}
	}
	return n
}

// A unit is a block, or a comment line that arrived earlier than the rest of its block.
type unit struct {
	service.Block
	at time.Time
}

func (u *unit) isComment() bool { return u.HasComment && !u.HasData && len(u.Event) == 0 && !u.HasID }

// maxBlockDelay is the longest time between a comment line and the end of its block. If the block ends later, the line
// is a heartbeat that no empty line follows, and the block belongs to the next message.
const maxBlockDelay = 300 * time.Millisecond

func (t *track) units() (out []*unit) {
	var lines []stream.Part
	for _, p := range t.parts {
		if p.Line {
			lines = append(lines, p)
			continue
		}
		for _, line := range lines {
			if p.At.Sub(line.At) > maxBlockDelay {
				out = append(out, &unit{line.Block, line.At})
			}
		}
		lines = nil
		out = append(out, &unit{p.Block, p.At})
	}
	for _, line := range lines {
		out = append(out, &unit{line.Block, line.At})
	}
	return out
}

func (t *track) lifetime() time.Duration { return t.endedAt.Sub(t.headersAt) }
