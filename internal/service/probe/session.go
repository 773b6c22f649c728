package probe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

type session struct {
	Config
	ctx      context.Context // ends when the user stops the probe
	requests *requests
	service  *service.Service // description of the requests
	marker   string
	firstSeq int64 // number of the first message; over 1000, because a counter of the service may start at 1
	silent   bool  // for Idle: each stream has its own topic and no TCP keep-alive, and keeps its last parts

	started time.Time
	streams int // number of streams, and {n} of the next one
	tracks  []*track

	firstEvent, clientSource string // name of the event that precedes the second request; place of {client} in it
	secondStatus             int    // status of the last response to a second request

	published []publication
	statuses  []int // different statuses with which messages were confirmed

	disconnected   *track // the stream that disconnectOne closed
	disconnectedAt time.Time
	disconnectedID string    // last event ID of the disconnected stream
	reopenedAt     time.Time // when the stream was opened again
	notes          []string  // sentences for the top of the description, or the end of the report of Idle
}

func newSession(ctx context.Context, c Config, requests *requests) *session {
	random := make([]byte, 3)
	_, _ = rand.Read(random) // rand.Read never fails
	s := &session{Config: c, ctx: ctx, requests: requests, marker: "probe-" + hex.EncodeToString(random), firstSeq: 1001 * (1 + int64(random[0]))}
	s.service, _ = service.Parse(toJSON(requests.draft("any", "id"))) // readRequests has validated it
	return s
}

func (s *session) values(n int) service.Values {
	topic := s.Topic
	if s.silent {
		topic += "-" + strconv.Itoa(n)
	}
	id := s.marker + "-" + strconv.Itoa(n)
	return service.Values{
		Base: s.requests.base, Topic: topic, Run: s.marker, Token: s.requests.subscribeToken,
		N: int64(n), ID: id, Prompt: service.DefaultPrompt(id),
	}
}

// observe opens and observes the streams. It returns an error if the first message, the first stream or a second
// request fails.
func (s *session) observe(ctx context.Context) error {
	s.started = time.Now()
	streamCtx, end := context.WithCancel(context.WithoutCancel(ctx)) // the streams outlive ctx
	defer end()
	defer s.closeAll()
	limit, stop := context.WithDeadline(ctx, s.started.Add(s.Length))
	defer stop()
	if err := s.publish(limit, 1); err != nil { // without a subscriber the status may differ
		return err
	}
	if err := s.start(limit, streamCtx); err != nil {
		return err
	}
	opening := s.openCompressed(streamCtx)
	defer func() {
		end() // cancels pending requests
		opening.Wait()
	}()
	if err := s.publish(limit, 7); err != nil {
		return err
	}
	if s.service.Publish == nil {
		s.await(limit, s.Length/4, 3) // resuming needs the id of an event
		if s.awaitEnds(limit) {
			return nil
		}
	}
	s.Progress("disconnecting one stream, to test resuming")
	s.disconnectOne(limit, streamCtx)
	s.watch(limit, streamCtx)
	if ctx.Err() != nil {
		s.notes = append(s.notes, fmt.Sprintf("The probe was stopped after %s.", formatSeconds(time.Since(s.started))))
	}
	return nil
}

// closeAll ends all streams. The tracks do not change afterwards.
func (s *session) closeAll() {
	var closing sync.WaitGroup
	for _, t := range s.tracks {
		closing.Go(t.close)
	}
	closing.Wait()
}

// start opens the plain streams, and sends their second requests. It returns an error if the first stream cannot be
// opened or a second request fails.
func (s *session) start(ctx, streamCtx context.Context) error {
	s.Progress(fmt.Sprintf("opening %s of %s", format.Count(s.Streams, "stream"), s.requests.base))
	for i := range s.Streams {
		t := s.dial(streamCtx, &track{role: plain})
		if i == 0 {
			if err := s.checkFirst(t); err != nil {
				return err
			}
		}
		s.sleep(ctx, s.Pace/4) // different start times show whether numbers are per stream or per topic
	}
	return s.openSecond(ctx)
}

func (s *session) dial(streamCtx context.Context, t *track) *track {
	t.n, t.keepsLast = s.streams, s.silent
	s.streams++
	s.tracks = append(s.tracks, t)
	s.request(streamCtx, t)
	return t
}

func (s *session) request(streamCtx context.Context, t *track) {
	v := s.values(t.n)
	r := stream.Fill(&s.service.Connect, &v)
	if r.AcceptEncoding = t.encoding; t.encoding != "" {
		r.Header.Del("Accept-Encoding")
	}
	r.LastEventID, r.NoKeepAlive = t.sentID, s.silent
	t.requestedAt, t.done = time.Now(), make(chan struct{})
	pending, cancel := context.WithCancel(streamCtx)
	stop := context.AfterFunc(s.ctx, cancel) // a stopped probe does not wait for headers
	open, err := s.client(min(requestTimeout, s.Length/2)).Open(pending, r)
	stop()
	t.headersAt, t.endedAt = time.Now(), time.Now()
	if err != nil {
		t.isStopped = s.ctx.Err() != nil
		if t.err = err; errors.Is(err, context.Canceled) || errors.Is(err, stream.ErrNoResponse) {
			t.err = fmt.Errorf("no response within %s", formatSeconds(time.Since(t.requestedAt)))
		}
		close(t.done)
		return
	}
	t.status, t.header = open.Status, open.Header
	if !open.IsEventStream() {
		t.refusal = open.Excerpt()
		open.Close()
		close(t.done)
		return
	}
	t.open = open
	go t.read([]string{s.requests.subscribeToken, s.requests.publishToken}, s.secondRequest(streamCtx, t))
}

func (s *session) checkFirst(t *track) error {
	v := s.values(t.n)
	r := stream.Fill(&s.service.Connect, &v)
	body := stream.InParentheses(t.refusal)
	kind := "no Content-Type"
	if given := http.Header(t.header).Get("Content-Type"); given != "" {
		kind = strconv.Quote(given)
	}
	switch {
	case t.open != nil:
		return nil
	case t.err != nil:
		if strings.HasPrefix(t.err.Error(), r.Method) {
			return t.err
		}
		return fmt.Errorf("%s: %w", r, t.err)
	case t.status == http.StatusOK:
		return fmt.Errorf("%s answered with %s%s, which is not an event stream; pass the URL of an event stream", r, kind, body)
	case t.status == http.StatusUnauthorized || t.status == http.StatusForbidden:
		return fmt.Errorf("%s answered %s%s; pass credentials, such as --header 'Authorization: Bearer {token}' with SUBSCRIBE_TOKEN set", r, http1.StatusText(t.status), body)
	}
	return fmt.Errorf("%s answered %s%s; pass the URL of an event stream", r, http1.StatusText(t.status), body)
}

var encodings = []string{"gzip", "br", "zstd"}

// openCompressed opens a stream for each compression. It does not wait for the responses, which a proxy may delay.
func (s *session) openCompressed(streamCtx context.Context) *sync.WaitGroup {
	s.Progress("opening a stream with each of " + strings.Join(encodings, ", "))
	var opening sync.WaitGroup
	for _, encoding := range encodings {
		t := &track{role: compressed, encoding: encoding, n: s.streams}
		s.streams++
		s.tracks = append(s.tracks, t)
		opening.Go(func() { s.request(streamCtx, t) })
	}
	return &opening
}

func (s *session) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// disconnectOne closes a stream, waits for messages, and opens two or three streams. The first of them resumes with the
// last event ID of the closed stream. The second has no event ID. If the closed stream had an event ID, the third has
// an unknown ID.
func (s *session) disconnectOne(ctx, streamCtx context.Context) {
	s.disconnected = s.tracks[s.Streams-1]
	s.disconnected.close()
	s.disconnectedAt = time.Now()
	if s.disconnected.open != nil {
		s.disconnectedID = s.disconnected.open.LastEventID()
	}
	if s.service.Publish != nil {
		_ = s.publish(ctx, 3) // send records failures in the notes
	} else {
		s.await(ctx, s.Length/4, 2)
	}
	if ctx.Err() != nil {
		return
	}
	s.reopenedAt = time.Now()
	reconnected := &track{role: resumed, n: s.disconnected.n, sentID: s.disconnectedID}
	s.tracks = append(s.tracks, reconnected)
	s.request(streamCtx, reconnected)
	s.dial(streamCtx, &track{role: fresh})
	if s.disconnectedID != "" {
		s.dial(streamCtx, &track{role: unknown, sentID: unusedID(s.disconnectedID)})
	}
	_ = s.publish(ctx, 2)
}

// await waits until each plain stream that the service has not ended has received n further blocks with data, or until
// limit has passed. If there is only one stream, await always waits for limit, because that stream may be disconnected.
func (s *session) await(ctx context.Context, limit time.Duration, n int) {
	from := time.Now()
	isWaiting := func(t *track) bool {
		return t.role == plain && t != s.disconnected && !t.endedByService() && t.countSince(from) < n
	}
	for time.Since(from) < limit && ctx.Err() == nil && (s.Streams == 1 || slices.ContainsFunc(s.tracks, isWaiting)) {
		s.sleep(ctx, s.Pace/10)
	}
}

const maxReopened = 6

// watch waits for heartbeats until the end of the probe. It replaces streams that the service ends, to measure more
// lifetimes.
func (s *session) watch(ctx, streamCtx context.Context) {
	reported := time.Now()
	replaced := map[*track]bool{}
	for ctx.Err() == nil {
		s.sleep(ctx, s.Pace)
		for _, t := range s.tracks {
			if t.role == plain && t != s.disconnected && !replaced[t] && t.endedByService() && len(replaced) < maxReopened && ctx.Err() == nil {
				replaced[t] = true
				s.dial(streamCtx, &track{role: plain})
			}
		}
		if time.Since(reported) >= 3*time.Second {
			reported = time.Now()
			s.Progress(fmt.Sprintf("%s of %s: %s", formatSeconds(time.Since(s.started)), formatSeconds(s.Length), s.progress()))
		}
	}
}

func (s *session) progress() string {
	blocks, comments := 0, 0
	for _, t := range s.tracks {
		t.mu.Lock()
		for _, p := range t.parts {
			if p.Line {
				comments++
			} else {
				blocks++
			}
		}
		t.mu.Unlock()
	}
	return fmt.Sprintf("%s and %s on %s", format.Count(blocks, "block"), format.Count(comments, "comment"), format.Count(s.streams, "stream"))
}

var (
	uuid       = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
	lastDigits = regexp.MustCompile(`[0-9]{1,15}([^0-9]*)$`)
)

// unusedID returns an event ID that probably belongs to no event. If id has digits, the result has the same form.
func unusedID(id string) string {
	if at := uuid.FindStringIndex(id); at != nil {
		return id[:at[0]] + "5f0ac000-0000-4000-8000-000000000000" + id[at[1]:]
	}
	if at := lastDigits.FindStringSubmatchIndex(id); at != nil {
		n, _ := strconv.ParseInt(id[at[0]:at[2]], 10, 64)
		return id[:at[0]] + strconv.FormatInt(n+1_000_000, 10) + id[at[2]:]
	}
	return id + "-unused"
}

func formatSeconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2g s", d.Round(time.Millisecond).Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
