package probe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// session is one probe.
type session struct {
	Config
	asked   *asked
	service *service.Service // the requests, without what is to be found out
	marker  string
	first   int64 // number of the first message: far from those of a counter of the service that starts at 1
	quiet   bool  // streams are held silent: each has a topic of its own, and no keep-alive

	began  time.Time
	opened int // streams; {n} of the next one
	tracks []*track

	event, client string // of the first event, which the second request waits for
	thenStatus    int

	published []sending
	statuses  []int // of publishing

	cut      *track
	cutAt    time.Time
	cutID    string
	reopened time.Time
	notes    []string // what went wrong on the way
}

func newSession(c Config, a *asked) *session {
	random := make([]byte, 3)
	_, _ = rand.Read(random) // it never fails
	s := &session{Config: c, asked: a, marker: "probe-" + hex.EncodeToString(random), first: 1001 * (1 + int64(random[0]))}
	s.service, _ = service.Parse(asJSON(a.draft("any", "id"))) // understand has checked it
	return s
}

func (s *session) values(n int) service.Values {
	topic := s.Topic
	if s.quiet {
		topic += "-" + strconv.Itoa(n)
	}
	id := s.marker + "-" + strconv.Itoa(n)
	return service.Values{
		Base: s.asked.base, Topic: topic, Run: s.marker, Token: s.asked.subscribe,
		N: int64(n), ID: id, Prompt: service.DefaultPrompt(id),
	}
}

// observe runs the probe. It returns an error if there is nothing to describe.
func (s *session) observe(ctx context.Context) error {
	s.began = time.Now()
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // of the streams: what they saw is kept when ctx ends
	defer end()
	defer s.closeAll()
	limit, stop := context.WithDeadline(ctx, s.began.Add(s.Length))
	defer stop()
	if err := s.publish(limit, 1); err != nil { // without a subscriber: its status may differ
		return err
	}
	if err := s.start(limit, life); err != nil {
		return err
	}
	packed := s.openPacked(life)
	defer func() {
		end() // those that have no answer yet give up
		packed.Wait()
	}()
	if err := s.publish(limit, 7); err != nil {
		return err
	}
	if s.service.Publish == nil {
		s.await(limit, s.Length/4, 3) // of an event the stream has an id to resume from
		if s.awaitEnds(limit) {
			return nil
		}
	}
	s.Progress("disconnecting one stream, to test resuming")
	s.cutOne(limit, life)
	s.watch(limit, life)
	if ctx.Err() != nil {
		s.notes = append(s.notes, fmt.Sprintf("The probe was stopped after %s.", inSeconds(time.Since(s.began))))
	}
	return nil
}

// closeAll ends all streams. What the tracks have does not change afterwards.
func (s *session) closeAll() {
	var closing sync.WaitGroup
	for _, t := range s.tracks {
		closing.Go(t.close)
	}
	closing.Wait()
}

// start opens the streams that are looked at all the time.
func (s *session) start(ctx, life context.Context) error {
	s.Progress(fmt.Sprintf("opening %s of %s", format.Count(s.Streams, "stream"), s.asked.base))
	for i := range s.Streams {
		t := s.dial(life, &track{role: plain})
		if i == 0 {
			if err := s.refused(t); err != nil {
				return err
			}
		}
		s.sleep(ctx, s.Pace/4) // the start shows numbers of each stream or of a topic
	}
	return s.second(ctx)
}

// dial opens a stream and follows it.
func (s *session) dial(life context.Context, t *track) *track {
	t.n, t.recent = s.opened, s.quiet
	s.opened++
	s.tracks = append(s.tracks, t)
	s.answer(life, t)
	return t
}

// answer makes the request of a stream.
func (s *session) answer(life context.Context, t *track) {
	v := s.values(t.n)
	r := stream.Fill(&s.service.Connect, &v)
	if t.encoding != "" {
		r.Header.Set("Accept-Encoding", t.encoding)
	}
	if t.lastID != "" {
		r.Header.Set("Last-Event-ID", t.lastID)
	}
	r.NoKeepAlive = s.quiet
	ctx, cancel := context.WithCancel(life)
	timer := time.AfterFunc(min(patience, s.Length/2), cancel)
	t.asked, t.done = time.Now(), make(chan struct{})
	open, err := stream.Open(ctx, r)
	t.head, t.endedAt = time.Now(), time.Now()
	if !timer.Stop() && err == nil {
		open.Close()
		err = context.Canceled
	}
	if err != nil {
		cancel()
		if t.err = err; errors.Is(err, context.Canceled) {
			t.err = fmt.Errorf("no answer within %s", inSeconds(time.Since(t.asked)))
		}
		close(t.done)
		return
	}
	context.AfterFunc(open.Context(), cancel)
	t.status, t.header = open.Status, open.Header
	if !open.IsEventStream() {
		t.refusal = open.Refusal()
		open.Close()
		close(t.done)
		return
	}
	t.open = open
	go t.read([]string{s.asked.subscribe, s.asked.publishing}, s.secondOf(life, t))
}

// refused explains why the first stream is not an event stream.
func (s *session) refused(t *track) error {
	v := s.values(t.n)
	r := stream.Fill(&s.service.Connect, &v)
	saying := ""
	if t.refusal != "" {
		saying = " (" + t.refusal + ")"
	}
	kind := http.Header(t.header).Get("Content-Type")
	switch {
	case t.open != nil:
		return nil
	case t.err != nil:
		if strings.HasPrefix(t.err.Error(), r.Method) {
			return t.err
		}
		return fmt.Errorf("%s: %w", r, t.err)
	case t.status == http.StatusOK:
		return fmt.Errorf("%s answered with %q, which is no event stream%s: give the URL of one", r, kind, saying)
	case t.status == http.StatusUnauthorized || t.status == http.StatusForbidden:
		return fmt.Errorf("%s answered %d %s%s: give it what it asks for, such as --header 'Authorization: Bearer {token}' with SUBSCRIBE_TOKEN set", r, t.status, http.StatusText(t.status), saying)
	}
	return fmt.Errorf("%s answered %d %s%s: give the URL of an event stream", r, t.status, http.StatusText(t.status), saying)
}

// encodings are what streams ask for, one each.
var encodings = []string{"gzip", "br", "zstd"}

// openPacked opens a stream for each compression. They may take long to answer, where a proxy holds them back.
func (s *session) openPacked(life context.Context) *sync.WaitGroup {
	s.Progress("opening a stream with each of " + strings.Join(encodings, ", "))
	var opening sync.WaitGroup
	for _, encoding := range encodings {
		t := &track{role: compressed, encoding: encoding, n: s.opened}
		s.opened++
		s.tracks = append(s.tracks, t)
		opening.Go(func() { s.answer(life, t) })
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

// cutOne closes a stream, lets messages pass, and opens it again in three ways.
func (s *session) cutOne(ctx, life context.Context) {
	s.cut = s.tracks[s.Streams-1]
	s.cut.close()
	s.cutAt, s.cutID = time.Now(), s.cut.lastEventID()
	if s.service.Publish != nil {
		_ = s.publish(ctx, 3) // notes has what went wrong
	} else {
		s.await(ctx, s.Length/4, 2)
	}
	if ctx.Err() != nil {
		return
	}
	s.reopened = time.Now()
	again := &track{role: resumed, n: s.cut.n, lastID: s.cutID}
	s.tracks = append(s.tracks, again)
	s.answer(life, again)
	s.dial(life, &track{role: fresh})
	if s.cutID != "" {
		s.dial(life, &track{role: unknown, lastID: neverWas(s.cutID)})
	}
	_ = s.publish(ctx, 2)
}

// await waits until n blocks with data have come on each of the other streams, or the time is over.
func (s *session) await(ctx context.Context, most time.Duration, n int) {
	until, from := time.Now().Add(most), time.Now()
	for time.Now().Before(until) && ctx.Err() == nil {
		all := true
		for _, t := range s.tracks {
			if t.role == plain && t != s.cut && !t.over() && t.since(from) < n {
				all = false
			}
		}
		if all && s.Streams > 1 {
			return
		}
		s.sleep(ctx, s.Pace/10)
	}
}

// mostReopened bounds how often streams are opened again that the service ends.
const mostReopened = 6

// watch waits for the end, for heartbeats in the silence among others. A stream that the service ends is opened again,
// to see whether that one ends after the same time.
func (s *session) watch(ctx, life context.Context) {
	again, said := 0, time.Now()
	seen := map[*track]bool{}
	for ctx.Err() == nil {
		s.sleep(ctx, s.Pace)
		for _, t := range s.tracks {
			if t.role != plain || t == s.cut || seen[t] || !t.over() {
				continue
			}
			if seen[t] = true; again < mostReopened && ctx.Err() == nil {
				again++
				s.dial(life, &track{role: plain})
			}
		}
		if time.Since(said) >= 10*time.Second {
			said = time.Now()
			s.Progress(fmt.Sprintf("%s of %s: %s", inSeconds(time.Since(s.began)), inSeconds(s.Length), s.soFar()))
		}
	}
}

func (s *session) soFar() string {
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
	return fmt.Sprintf("%d blocks and %d comment lines on %d streams", blocks, comments, s.opened)
}

var (
	uuid    = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
	lastRun = regexp.MustCompile(`[0-9]{1,15}([^0-9]*)$`)
)

// neverWas is an event ID of the same form, which no event had.
func neverWas(id string) string {
	if at := uuid.FindStringIndex(id); at != nil {
		return id[:at[0]] + "5f0ac000-0000-4000-8000-000000000000" + id[at[1]:]
	}
	if at := lastRun.FindStringSubmatchIndex(id); at != nil {
		n, _ := strconv.ParseInt(id[at[0]:at[2]], 10, 64)
		return id[:at[0]] + strconv.FormatInt(n+1_000_000, 10) + id[at[2]:]
	}
	return id + "-never-was"
}

func inSeconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2g s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
