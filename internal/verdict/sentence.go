package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Words put the findings of a run into sentences.
type Words struct{ m *shard.Merged }

// WordsOf are the words for the findings of a run.
func WordsOf(m *shard.Merged) Words { return Words{m} }

// Sentence puts a finding into words: what it is, on which device, and when.
func (w Words) Sentence(r *shard.Connection, f ledger.Finding, at time.Time) string {
	when := at.UTC().Format("15:04:05.000") + " UTC"
	noun := w.m.Plan.Noun()
	which := w.which(r)
	switch f.Kind {
	case ledger.KindLost:
		switch {
		case f.Note == published:
			return fmt.Sprintf("%s missed %s: sent at %s, %s", r.ID, which(f.From, f.To), when, f.Note)
		case f.Note != "":
			return fmt.Sprintf("%s missed %s: %s, but nothing came before the stream ended at %s", r.ID, which(f.From, f.To), f.Note, when)
		}
		return fmt.Sprintf("%s missed %s: the number was skipped, noticed at %s", r.ID, which(f.From, f.To), when)
	case ledger.KindUnsent:
		return fmt.Sprintf("%s missed %d: the stream was silent for that long before %s%s", r.ID, f.Count, when, instead(r.Record, f))
	case ledger.KindTail:
		return fmt.Sprintf("%s missed %d: the stream was silent from %s %d to its end at %s%s", r.ID, f.Count, noun, f.From, when, instead(r.Record, f))
	case ledger.KindDuplicated:
		return fmt.Sprintf("%s received %s twice, again at %s", r.ID, which(f.From, f.From), when)
	case ledger.KindReordered:
		return fmt.Sprintf("%s received %s out of order, at %s", r.ID, which(f.From, f.From), when)
	case ledger.KindCorrupted:
		return fmt.Sprintf("%s received %s corrupted at %s: %s", r.ID, which(f.From, f.From), when, w.instead(f.Note))
	case ledger.KindLate:
		return fmt.Sprintf("%s received %s late by %s, at %s", r.ID, which(f.From, f.From), format.Duration(f.Lateness), when)
	case ledger.KindDropped:
		return fmt.Sprintf("%s was dropped at %s (%s) after %d %ss", r.ID, when, f.Note, r.Received, noun)
	case ledger.KindRefused:
		return fmt.Sprintf("%s was refused at %s (%s)%s", r.ID, when, f.Note, refusedBefore(r.Record, f))
	case ledger.KindRestarted:
		return fmt.Sprintf("%s was numbered anew from 1 after noop %d, at %s", r.ID, f.From, when)
	case ledger.KindCut:
		return fmt.Sprintf("%s was cut at %s, after %s, before the lifetime that the service gives a stream (end.lifetime)", r.ID, when, format.Duration(f.Lateness))
	case ledger.KindOverdue:
		return fmt.Sprintf("%s was still open at %s, after %s, over the lifetime that the service gives a stream (end.lifetime)", r.ID, when, format.Duration(f.Lateness))
	case ledger.KindStrayed:
		return fmt.Sprintf("%s received a %s of another topic at %s: %s", r.ID, noun, when, f.Note)
	case ledger.KindAnnounced:
		by := "resume.gap"
		if w.m.Service != nil && w.m.Service.Gap != "" {
			by = w.m.Service.Gap
		}
		return fmt.Sprintf("%s was told at %s that messages are missing (%s)", r.ID, when, by)
	}
	return fmt.Sprintf("%s: %s at %s", r.ID, f.Kind, when)
}

// which names messages by their numbers, and by their topic where there is one.
func (w Words) which(r *shard.Connection) func(from, to uint64) string {
	noun, topic := w.m.Plan.Noun(), ""
	if name, _, ok := w.m.Topic(r); ok {
		topic = " of topic " + name
	}
	return func(from, to uint64) string {
		switch {
		case from == 0: // corrupted beyond recognition
			return "a " + noun + topic
		case from == to:
			return fmt.Sprintf("%s %d%s", noun, from, topic)
		}
		return fmt.Sprintf("%ss %d to %d%s", noun, from, to, topic)
	}
}

// instead says what a corrupted message was.
func (w Words) instead(note string) string {
	if w.m.Plan.Described() {
		return note
	}
	return fmt.Sprintf("%q instead of \"0\"", note)
}

// instead names the other events that came, if there were as many as missing noops.
func instead(r ledger.Record, f ledger.Finding) string {
	var all uint64
	var names []string
	for _, o := range r.Others {
		all += o.Count
		names = append(names, fmt.Sprintf("%d named %q", o.Count, o.Name))
	}
	if all < f.Count || len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; other events came: %s (a noop is an event without a name and with the data 0)", strings.Join(names, ", "))
}

// taken is the reason of a refusal because the id has a stream already.
const taken = "status 409"

// idle is the reason of a drop because nothing came for a number of planned intervals.
const idle = "idle"

// refusedBefore adds all attempts if there were several, and what 409 Conflict means.
func refusedBefore(r ledger.Record, f ledger.Finding) (text string) {
	if n := r.RefusedAttempts(); n > 1 {
		first := f.At
		for _, one := range r.Refusals {
			first = min(first, one.First)
		}
		text = fmt.Sprintf(", as in all %d attempts of %s", n, format.Duration(f.At-first))
		if len(r.Refusals) > 1 {
			text = refusals(" after "+format.Duration(f.At-first)+" of attempts, which were refused ", r.Refusals)
		}
	}
	if strings.HasPrefix(f.Note, taken) {
		text += ": the id has a stream already, so another client uses this PREFIX, or the service did not end an earlier stream"
	}
	return text
}
