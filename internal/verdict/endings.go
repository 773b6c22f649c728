package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// The reasons of connection errors that sentences and rules name.
const (
	idle     = "idle"            // no byte arrived for a number of planned intervals, so the client closed the stream
	timedOut = "connect_timeout" // the server did not answer an attempt to connect
	taken    = "status 409"      // the id already has a stream
)

// endings describes how streams ended, by reason; %s is "was" or "were".
var endings = map[string]string{
	idle:        "went silent",
	"server":    "%s closed by the server",
	"truncated": "%s closed by the server in the middle of a response",
}

// ending describes how one or more streams ended.
func ending(reason, were string) string {
	text, ok := endings[reason]
	if !ok {
		return fmt.Sprintf("%s disconnected (%s)", were, reason)
	}
	return strings.Replace(text, "%s", were, 1)
}

// dropped returns the sentence for a stream that ended early.
func (w Words) dropped(r *shard.Connection, f ledger.Finding, when string) string {
	reason, detail := r.Reason, ""
	if rest, ok := strings.CutPrefix(f.Note, reason); ok && endings[reason] != "" {
		detail = rest
	} else {
		reason = f.Note
	}
	noun := w.m.Service.Noun()
	after := "after " + format.Count(r.Received, noun)
	if r.Received == 0 {
		after = "before the first " + noun
	}
	text := fmt.Sprintf("%s %s %s%s", r.ID, ending(reason, "was"), after, detail)
	if reason == idle {
		text += fmt.Sprintf("; closed by soak after %s without data", format.Duration((f.At - max(r.LastAt, r.OpenedAt)).Round(time.Millisecond)))
	}
	return text + ", at " + when + disconnectedFor(r.Record, f)
}
