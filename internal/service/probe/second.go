package probe

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// secondOf makes the second request of a stream that is opened when it is known what that needs; nil: none.
func (s *session) secondOf(life context.Context, t *track) func(stream.Part) {
	if s.asked.then == nil || s.service.SecondRequest == nil || s.event == "" {
		return nil
	}
	var once sync.Once
	return func(p stream.Part) {
		if client, ok := s.service.Client(&p.Block); ok || !s.asked.thenClient && p.EventName() == s.event {
			once.Do(func() { _, _ = s.join(life, t, client) })
		}
	}
}

// join makes the second request.
func (s *session) join(ctx context.Context, t *track, client string) (stream.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v := s.values(t.n)
	v.Client = client
	return stream.Do(ctx, stream.Fill(&s.service.SecondRequest.Request, &v)) //nolint:wrapcheck // it names the request
}

// second waits for the first events of the streams, finds out which value of them the second request needs, and
// makes it for each.
func (s *session) second(ctx context.Context) error {
	if s.asked.then == nil {
		return nil
	}
	var first []unit
	var of []*track
	for _, t := range s.tracks {
		if t.open == nil {
			continue
		}
		u, ok := t.first(ctx, s.Pace)
		if !ok {
			return fmt.Errorf("no event came on a stream within %s: the second request needs one to wait for", inSeconds(patience))
		}
		first, of = append(first, u), append(of, t)
	}
	s.event, s.client = first[0].EventName(), ""
	if s.asked.thenClient {
		if s.client = clientOf(first); s.client == "" {
			return fmt.Errorf("--then-… has {client}, and nothing in the first event of a stream looks like it: %s", stream.Shorten(string(first[0].Data), 200))
		}
	}
	var err error
	client := s.client
	if client == "" {
		client = "id"
	}
	if s.service, err = service.Parse(asJSON(s.asked.draft(s.event, client))); err != nil {
		return err //nolint:wrapcheck // sentences for the user
	}
	for i, t := range of {
		client, ok := s.service.Client(&first[i].Block)
		if s.asked.thenClient && !ok {
			return fmt.Errorf("the first event of a stream has no %s: %s", s.client, stream.Shorten(string(first[i].Data), 200))
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

// first waits for the first block of a stream that has data.
func (t *track) first(ctx context.Context, pace time.Duration) (unit, bool) {
	for until := time.Now().Add(patience); time.Now().Before(until) && ctx.Err() == nil; time.Sleep(pace / 20) {
		t.mu.Lock()
		for _, p := range t.parts {
			if !p.Line && p.HasData {
				t.mu.Unlock()
				return unit{p.Block, p.At}, true
			}
		}
		t.mu.Unlock()
		if t.over() {
			break
		}
	}
	return unit{}, false
}

// looksLikeClient are names that a client's id has.
var looksLikeClient = regexp.MustCompile(`(?i)client|conn|session|sub|id`)

// clientOf is where the value is that names a stream: another one in each.
func clientOf(first []unit) string {
	best := ""
	for _, source := range sources(first[0].Block) {
		if read := reading(source, readClient); read != nil {
			values := map[string]bool{}
			for i := range first {
				if v, ok := read(&first[i].Block); ok && v.text != "" {
					values[v.text] = true
				}
			}
			if len(values) == len(first) && (best == "" || !looksLikeClient.MatchString(best) && looksLikeClient.MatchString(source)) {
				best = source
			}
		}
	}
	return best
}
