package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/stream"
)

// LongestIdle is how long a stream is held silent at most.
const LongestIdle = 15 * time.Minute

// ages are the silences after which a stream is asked whether it is alive, one stream each: below and above what is known to
// cut (knownLimits). A message that comes ends the silence, so a stream is asked once.
var ages = []time.Duration{
	30 * time.Second, 55 * time.Second, 65 * time.Second, 115 * time.Second, 125 * time.Second, 235 * time.Second, 245 * time.Second,
	345 * time.Second, 355 * time.Second,
}

// An end of a silent stream.
type fate int

const (
	silent   fate = iota // the probe ended first
	alive                // the message that was published after the silence came
	cut                  // somebody closed the stream
	vanished             // the message did not come, and nobody had closed the stream
)

// a held stream is one that is silent.
type held struct {
	*track
	age   time.Duration // of the silence after which it is asked; 0: it is only held
	fate  fate
	after time.Duration // the silence at that time
	most  time.Duration // the longest silence that it has survived
}

// Idle holds silent streams and finds out after how long something on the path cuts them, until the longest silence that
// Length allows is over or ctx ends. What it found is text, for a person.
//
// Who cuts a stream need not tell the client: a NAT forgets it. So where the probe can publish to a topic of its own for each
// stream, it asks each once, by a message, whether it is alive; else it sees only cuts that are told. TCP's keep-alive is off,
// which would keep a NAT from forgetting.
func Idle(ctx context.Context, c Config) (text string, err error) {
	a, err := c.prepare()
	if err != nil {
		return "", err
	}
	i := &idler{session: newSession(c, a)}
	i.quiet = true
	i.asks = i.service.Publish != nil && strings.Contains(string(asJSON(a.connect)), "{topic}")
	if i.asks {
		i.ages = i.within(ages)
		if c.ages != nil {
			i.ages = c.ages
		}
		i.Streams = len(i.ages)
	}
	if err := i.hold(c.network(ctx)); err != nil {
		return "", err
	}
	return i.report(), nil
}

// within are the silences that a probe of that length can wait for, and the longest that it can.
func (c *Config) within(all []time.Duration) (out []time.Duration) {
	last := c.Length - c.Pace // it takes some time to open the streams
	for _, age := range all {
		if age < last {
			out = append(out, age)
		}
	}
	return append(out[:min(len(out), MostStreams-1)], last)
}

// idler is a probe of silent streams.
type idler struct {
	*session
	asks bool // a message asks each stream whether it is alive
	ages []time.Duration

	mu   sync.Mutex // of what follows, and of publishing
	held []*held
}

func (i *idler) hold(ctx context.Context) error {
	i.began = time.Now()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer i.closeAll()
	if err := i.start(ctx, life); err != nil {
		return err
	}
	for n, t := range i.tracks {
		if t.open == nil {
			return i.refused(t)
		}
		h := &held{track: t}
		if i.asks {
			h.age = i.ages[n]
			if err := i.arrives(ctx, h); err != nil {
				return err
			}
		}
		i.held = append(i.held, h)
	}
	limit, stop := context.WithTimeout(ctx, i.Length)
	defer stop()
	i.Progress(fmt.Sprintf("holding %s silent, for %s at most", count(len(i.held), "stream"), inSeconds(i.Length)))
	var holding sync.WaitGroup
	for _, h := range i.held {
		holding.Go(func() {
			if i.follow(ctx, limit, h); i.found() {
				stop()
			}
		})
	}
	holding.Wait()
	if ctx.Err() != nil {
		i.notes = append(i.notes, fmt.Sprintf("The probe was stopped after %s.", inSeconds(time.Since(i.began))))
	}
	return nil
}

// arrives asserts that what is published to the topic of a stream comes on it: else silence would prove nothing.
func (i *idler) arrives(ctx context.Context, h *held) error {
	came, err := i.ask(ctx, h)
	if err == nil && !came && ctx.Err() == nil {
		err = fmt.Errorf("a message that was published to %s was confirmed, and did not come on the stream of that topic within %s: nothing can ask a silent stream whether it is alive",
			i.values(h.n).Topic, inSeconds(i.patience()))
	}
	return err
}

// ask publishes a message to the topic of a stream, and waits for something to come on it.
func (i *idler) ask(ctx context.Context, h *held) (came bool, err error) {
	i.mu.Lock()
	asked := time.Now()
	err = i.send(ctx, h.n)
	i.mu.Unlock()
	if err != nil {
		return false, err
	}
	for until := time.Now().Add(i.patience()); time.Now().Before(until) && ctx.Err() == nil && !h.over(); i.sleep(ctx, i.Pace/20) {
		if i.brought(h, asked) {
			return true, nil
		}
	}
	return i.brought(h, asked), nil
}

// patience is how long a message may take.
func (i *idler) patience() time.Duration { return 10 * i.Pace }

// brought says that a message of the probe came on a stream since then.
func (i *idler) brought(h *held, since time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.parts, func(p stream.Part) bool {
		return !p.Line && p.HasData && p.At.After(since) && (!i.sends("{run}") || bytes.Contains(bytes.Join([][]byte{p.Event, p.ID, p.Data}, nil), []byte(i.marker)))
	})
}

// follow waits for the fate of a stream, until limit. A byte that comes begins the silence anew.
func (i *idler) follow(ctx, limit context.Context, h *held) {
	for limit.Err() == nil {
		last := h.heard()
		quiet := time.Since(last)
		switch {
		case h.over():
			i.is(h, cut, h.endedAt.Sub(last))
			return
		case h.age > 0 && quiet >= h.age:
			came, err := i.ask(ctx, h)
			switch {
			case came:
				h.most = max(h.most, quiet)
				i.is(h, alive, quiet)
			case h.over(): // the end came in place of the message
				i.is(h, cut, quiet)
			case err == nil && ctx.Err() == nil: // else notes has why it was not published
				i.is(h, vanished, quiet)
			}
			return
		}
		h.most = max(h.most, quiet)
		i.sleep(limit, i.Pace/4)
	}
}

// is puts down the fate of a stream.
func (i *idler) is(h *held, f fate, after time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	h.fate, h.after = f, after
	i.Progress(fmt.Sprintf("stream %d was silent for %s: it is %s", h.n+1, inSeconds(after), [...]string{"", "alive", "cut", "gone, and nobody said so"}[f]))
}

// enough is how many streams have to be cut for the probe to end early: one may have broken for a reason of its own.
const enough = 2

// found says that it is known after how long streams are cut.
func (i *idler) found() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := 0
	for _, h := range i.held {
		if h.fate == vanished {
			n++
		}
	}
	return n >= enough
}

// heard is when the last byte of the stream came, of its head if there was none. It need not be of a part: an empty line keeps
// a proxy from cutting as well as a comment does.
func (t *track) heard() time.Time {
	if t.open != nil {
		if at, ok := t.open.Heard(); ok {
			return at
		}
	}
	return t.head
}

const inOrder = "the answer was ended in order"

// how is how a stream ended, as the client saw it.
func (t *track) how() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(t.ended, io.ErrUnexpectedEOF):
		return "the connection was closed in the middle of the answer"
	case errors.Is(t.ended, io.EOF):
		return inOrder
	case errors.Is(t.ended, syscall.ECONNRESET):
		return "the connection was reset"
	}
	return fmt.Sprintf("it broke: %v", t.ended)
}
