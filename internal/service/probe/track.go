package probe

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// role is what a stream is opened for.
type role int

const (
	plain      role = iota // looked at from its start to its end
	compressed             // asks for a compression
	resumed                // resumes a disconnected stream
	fresh                  // opened at the same time as that, without a last event ID
	unknown                // opened with an event ID that never was
)

// track is what was seen of one stream.
type track struct {
	role     role
	n        int    // {n}
	encoding string // that it asks for
	lastID   string // that it sends

	asked, head time.Time
	status      int
	header      map[string][]string
	err         error // why there was no answer
	refusal     string

	mu      sync.Mutex
	parts   []stream.Part
	size    int  // bytes of parts
	recent  bool // keeps the last parts, not the first, if there are too many
	ended   error
	endedAt time.Time
	ours    bool // it was closed here
	id      string
	bytes   int64

	open *stream.Stream
	done chan struct{}
}

// These limits bound the memory that the parts of one stream use, whatever the service sends.
const (
	maxParts = 5000
	maxBytes = 4 << 20
)

// maxQuoted is the length in bytes up to which a description quotes what a service sent.
const maxQuoted = 1 << 10

// keep stores a part within the limits of a stream.
func (t *track) keep(p stream.Part) {
	size := sizeOf(p)
	if t.recent {
		for len(t.parts) > 0 && (len(t.parts) == maxParts || t.size+size > maxBytes) {
			t.forget((len(t.parts) + 1) / 2)
		}
	}
	if len(t.parts) == maxParts || t.size+size > maxBytes {
		return
	}
	t.parts, t.size = append(t.parts, p), t.size+size
}

// forget removes the first n parts.
func (t *track) forget(n int) {
	for _, p := range t.parts[:n] {
		t.size -= sizeOf(p)
	}
	t.parts = slices.Delete(t.parts, 0, n)
}

func sizeOf(p stream.Part) int { return len(p.Event) + len(p.ID) + len(p.Data) + len(p.Comment) }

// read reads a stream to its end. It calls first for each block, for the second request. Secrets that the service
// repeats are not kept.
func (t *track) read(secrets []string, first func(stream.Part)) {
	defer close(t.done)
	for {
		p, err := t.open.Next()
		t.mu.Lock()
		if err != nil {
			t.ended, t.endedAt, t.bytes = err, time.Now(), t.open.Bytes()
			t.ours = errors.Is(err, context.Canceled)
			t.mu.Unlock()
			return
		}
		t.keep(without(p, secrets))
		t.id = t.open.LastEventID()
		t.mu.Unlock()
		if !p.Line && first != nil {
			first(p)
		}
	}
}

// without is a part with {token} in the place of secrets.
func without(p stream.Part, secrets []string) stream.Part {
	for _, text := range []*[]byte{&p.Event, &p.ID, &p.Data, &p.Comment} {
		if len(*text) > 0 {
			*text = []byte(secret.Hide(string(*text), secrets...))
		}
	}
	return p
}

// close ends the stream from here.
func (t *track) close() {
	if t == nil || t.open == nil {
		return
	}
	t.open.Close()
	<-t.done
}

// over reports whether the service has ended the stream.
func (t *track) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended != nil && !t.ours
}

func (t *track) lastEventID() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.id
}

// since counts the blocks with data since then.
func (t *track) since(from time.Time) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.parts {
		if !p.Line && p.HasData && p.At.After(from) {
			n++
		}
	}
	return n
}

// unit is a block, or a comment that came alone.
type unit struct {
	service.Block
	at time.Time
}

// alone reports whether there is only a comment.
func (u *unit) alone() bool { return u.HasComment && !u.HasData && len(u.Event) == 0 && !u.HasID }

// sameBlock is how long after a comment line the block that it is in ends at most. A heartbeat without a blank line
// behind it stands in the block of the next message, too, but that comes later.
const sameBlock = 300 * time.Millisecond

// units are the blocks of a stream, and the comments that came alone.
func (t *track) units() (out []unit) {
	var lines []stream.Part
	for _, p := range t.parts {
		if p.Line {
			lines = append(lines, p)
			continue
		}
		for _, line := range lines {
			if p.At.Sub(line.At) > sameBlock {
				out = append(out, unit{line.Block, line.At})
			}
		}
		lines = nil
		out = append(out, unit{p.Block, p.At})
	}
	for _, line := range lines {
		out = append(out, unit{line.Block, line.At})
	}
	return out
}

// lasted is how long the stream was open.
func (t *track) lasted() time.Duration { return t.endedAt.Sub(t.head) }
