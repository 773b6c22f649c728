package probe

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// secondRequest returns a function that receives the blocks of a new stream and sends its second request after the
// first event. It returns nil if streams need no second request, or if openSecond has not yet found the first event.
func (s *session) secondRequest(streamCtx context.Context, t *track) func(stream.Part) {
	if s.requests.secondRequest == nil || s.service.SecondRequest == nil || s.firstEvent == "" {
		return nil
	}
	var once sync.Once
	return func(p stream.Part) {
		if client, ok := s.service.Client(&p.Block); ok || !s.requests.secondHasClient && p.EventName() == s.firstEvent {
			once.Do(func() { _, _ = s.sendSecond(streamCtx, t, client) })
		}
	}
}

func (s *session) sendSecond(ctx context.Context, t *track, client string) (stream.Answer, error) {
	v := s.values(t.n)
	v.Client = client
	return s.client(requestTimeout).Do(ctx, stream.Fill(&s.service.SecondRequest.Request, &v)) //nolint:wrapcheck // the error names the request
}

// openSecond waits for the first event of each stream, finds {client} in it, and sends the second request.
func (s *session) openSecond(ctx context.Context) error {
	if s.requests.secondRequest == nil {
		return nil
	}
	var first []unit
	var opened []*track
	for _, t := range s.tracks {
		if t.open == nil {
			continue
		}
		u, ok := t.firstEvent(ctx, s.Pace)
		if !ok {
			return fmt.Errorf("no event arrived on a stream within %s or before its end, but the second request needs the first event", formatSeconds(requestTimeout))
		}
		first, opened = append(first, u), append(opened, t)
	}
	s.firstEvent, s.clientSource = first[0].EventName(), ""
	if s.requests.secondHasClient {
		if s.clientSource = clientSource(first); s.clientSource == "" {
			return fmt.Errorf("--then-… contains {client}, but no value in the first events differs on each stream: %s", format.Shorten(string(first[0].Data), 200))
		}
	}
	var err error
	if s.service, err = service.Parse(toJSON(s.requests.draft(s.firstEvent, cmp.Or(s.clientSource, "id")))); err != nil {
		return err //nolint:wrapcheck // sentences for the user
	}
	for i, t := range opened {
		client, ok := s.service.Client(&first[i].Block)
		if s.requests.secondHasClient && !ok {
			return fmt.Errorf("the first event of a stream has no %s: %s", s.clientSource, format.Shorten(string(first[i].Data), 200))
		}
		answer, err := s.sendSecond(ctx, t, client)
		if err != nil {
			return err
		}
		if s.secondStatus = answer.Status; answer.Status < 200 || answer.Status > 299 {
			v := s.values(t.n)
			return fmt.Errorf("%s answered %s%s", stream.Fill(&s.service.SecondRequest.Request, &v), http1.StatusText(answer.Status), stream.InParentheses(answer.Body))
		}
	}
	return nil
}

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

// clientName matches places that typically contain the id of a client.
var clientName = regexp.MustCompile(`(?i)client|conn|session|sub|id`)

// clientSource returns the place of a value that differs on each stream, preferably one that matches clientName, or "".
func clientSource(first []unit) string {
	best := ""
	for _, source := range sources(first[0].Block) {
		then := object{{name: "event", value: first[0].EventName()}, {name: "client", value: source}, {name: "url", value: "{base}/{client}"}}
		s := compile(append(slices.Clone(anyURL), field{name: "then", value: then}), "unchecked")
		if s == nil {
			continue
		}
		values := map[string]bool{}
		for i := range first {
			if client, ok := s.Client(&first[i].Block); ok && client != "" {
				values[client] = true
			}
		}
		if len(values) == len(first) && (best == "" || !clientName.MatchString(best) && clientName.MatchString(source)) {
			best = source
		}
	}
	return best
}
