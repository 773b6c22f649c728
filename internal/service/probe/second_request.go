package probe

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// secondRequest returns a function that sends the second request of a new stream after its first event; nil if there
// is none.
func (s *session) secondRequest(life context.Context, t *track) func(stream.Part) {
	if s.requests.then == nil || s.service.SecondRequest == nil || s.firstEvent == "" {
		return nil
	}
	var once sync.Once
	return func(p stream.Part) {
		if client, ok := s.service.Client(&p.Block); ok || !s.requests.thenClient && p.EventName() == s.firstEvent {
			once.Do(func() { _, _ = s.join(life, t, client) })
		}
	}
}

// join sends the second request.
func (s *session) join(ctx context.Context, t *track, client string) (stream.Answer, error) {
	v := s.values(t.n)
	v.Client = client
	return s.client(requestTimeout).Do(ctx, stream.Fill(&s.service.SecondRequest.Request, &v)) //nolint:wrapcheck // it names the request
}

// openSecond waits for the first events of the streams, finds the value in them that the second request needs, and
// sends it for each stream.
func (s *session) openSecond(ctx context.Context) error {
	if s.requests.then == nil {
		return nil
	}
	var first []unit
	var of []*track
	for _, t := range s.tracks {
		if t.open == nil {
			continue
		}
		u, ok := t.firstEvent(ctx, s.Pace)
		if !ok {
			return fmt.Errorf("no event arrived on a stream within %s: the second request waits for one", inSeconds(requestTimeout))
		}
		first, of = append(first, u), append(of, t)
	}
	s.firstEvent, s.clientSource = first[0].EventName(), ""
	if s.requests.thenClient {
		if s.clientSource = clientSource(first); s.clientSource == "" {
			return fmt.Errorf("--then-… contains {client}, but no value in the first event of a stream can be it: %s", format.Shorten(string(first[0].Data), 200))
		}
	}
	var err error
	client := s.clientSource
	if client == "" {
		client = "id"
	}
	if s.service, err = service.Parse(toJSON(s.requests.draft(s.firstEvent, client))); err != nil {
		return err //nolint:wrapcheck // sentences for the user
	}
	for i, t := range of {
		client, ok := s.service.Client(&first[i].Block)
		if s.requests.thenClient && !ok {
			return fmt.Errorf("the first event of a stream has no %s: %s", s.clientSource, format.Shorten(string(first[i].Data), 200))
		}
		answer, err := s.join(ctx, t, client)
		if err != nil {
			return err
		}
		if s.thenStatus = answer.Status; answer.Status < 200 || answer.Status > 299 {
			v := s.values(t.n)
			return fmt.Errorf("%s answered %d %s (%s)", stream.Fill(&s.service.SecondRequest.Request, &v), answer.Status, http.StatusText(answer.Status), answer.Body)
		}
	}
	return nil
}

// firstEvent waits for the first block of a stream that has data.
func (t *track) firstEvent(ctx context.Context, pace time.Duration) (unit, bool) {
	for until := time.Now().Add(requestTimeout); time.Now().Before(until) && ctx.Err() == nil; time.Sleep(pace / 20) {
		t.mu.Lock()
		for _, p := range t.parts {
			if !p.Line && p.HasData {
				t.mu.Unlock()
				return unit{p.Block, p.At}, true
			}
		}
		t.mu.Unlock()
		if t.endedByService() {
			break
		}
	}
	return unit{}, false
}

// clientName matches names that a client's id may have.
var clientName = regexp.MustCompile(`(?i)client|conn|session|sub|id`)

// clientSource returns the source of a value that differs on every stream.
func clientSource(first []unit) string {
	best := ""
	for _, source := range sources(first[0].Block) {
		if read := readerOf(source, readClient); read != nil {
			values := map[string]bool{}
			for i := range first {
				if v, ok := read(&first[i].Block); ok && v.text != "" {
					values[v.text] = true
				}
			}
			if len(values) == len(first) && (best == "" || !clientName.MatchString(best) && clientName.MatchString(source)) {
				best = source
			}
		}
	}
	return best
}
