package probe

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/stream"
)

// role is what a stream is opened for.
type role int

const (
	plain      role = iota // looked at from its start to its end
	compressed             // asks for a compression
	resumed                // goes on behind a stream that was cut
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
	dropped int  // parts over the most that are kept
	recent  bool // of these the last are kept, and not the first
	ended   error
	endedAt time.Time
	ours    bool // it was closed here
	id      string
	bytes   int64

	open *stream.Stream
	done chan struct{}
}

// most bounds what is kept of one stream.
const most = 5000

// read reads a stream to its end. first is told of each block, for the second request. Of a secret that the service
// says back nothing is kept.
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
		if t.recent && len(t.parts) == most {
			t.parts, t.dropped = append(t.parts[:0], t.parts[most/2:]...), t.dropped+most/2
		}
		if len(t.parts) < most {
			t.parts = append(t.parts, without(p, secrets))
		} else {
			t.dropped++
		}
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
			*text = []byte(service.Hide(string(*text), secrets...))
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

// over says that the service has ended the stream.
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

// alone says that there is nothing but a comment.
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
