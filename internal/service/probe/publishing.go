package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

type publication struct {
	seq, sentAt int64
	at          time.Time // sentAt as a time
	confirmed   bool
}

func (s *session) publish(ctx context.Context, n int) error {
	for i := 0; i < n && s.service.Publish != nil && ctx.Err() == nil; i++ {
		if err := s.send(ctx, 0); err != nil {
			return err
		}
		if confirmed := s.countConfirmed(); confirmed%3 == 0 {
			s.Progress("published " + format.Count(confirmed, "message"))
		}
		s.sleep(ctx, s.Pace)
	}
	return nil
}

// send publishes the next message to the topic of stream n. It returns a failure as an error until the service has
// confirmed a message, and records later failures in the notes.
func (s *session) send(ctx context.Context, n int) error {
	v := s.values(n)
	v.Token, v.Seq, v.SentAt = s.requests.publishToken, s.firstSeq+int64(len(s.published)), time.Now().UnixMicro()
	r := stream.Fill(s.service.Publish, &v)
	r.NoRedirect = true
	s.published = append(s.published, publication{seq: v.Seq, sentAt: v.SentAt, at: time.UnixMicro(v.SentAt)})
	answer, err := s.client(requestTimeout).Do(ctx, r)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%s: no response within %s", r, formatSeconds(time.Since(s.published[len(s.published)-1].at)))
	case errors.Is(err, context.Canceled):
		err = nil // the probe was stopped, so the missing response is not a failure
	case err == nil && (answer.Status >= 200 && answer.Status <= 299 || answer.Status == http.StatusSeeOther):
		if !slices.Contains(s.statuses, answer.Status) {
			s.statuses = append(s.statuses, answer.Status)
		}
		s.published[len(s.published)-1].confirmed = true
	case err == nil:
		err = refusalError(r, answer)
	}
	if err == nil || s.countConfirmed() == 0 {
		return err
	}
	s.notes = append(s.notes, fmt.Sprintf("Message %d was not confirmed: %v.", v.Seq, err))
	return nil
}

func refusalError(r stream.Request, answer stream.Answer) error {
	text := fmt.Sprintf("%s answered %s", r, http1.StatusText(answer.Status))
	if location := answer.Header.Get("Location"); location != "" {
		text += fmt.Sprintf(", to %s, which is not followed; use that URL", format.Shorten(secret.Hide(location, r.Secret()), 200))
		if answer.Status == http.StatusFound { // many frameworks answer a form with 302 instead of 303
			text += ", or write a description with publish.ok: [302] if the service accepted the message"
		}
		return errors.New(text)
	}
	text += stream.InParentheses(answer.Body)
	if answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden {
		text += "; pass credentials, such as --publish-header 'Authorization: Bearer {token}' with PUBLISH_TOKEN set"
	}
	return errors.New(text)
}

func (s *session) countConfirmed() (n int) {
	for _, p := range s.published {
		if p.confirmed {
			n++
		}
	}
	return n
}
