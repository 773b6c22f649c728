package verdict

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Words formats the findings of a run as sentences.
type Words struct{ m *shard.Merged }

// WordsOf returns the formatter for the findings of a run.
func WordsOf(m *shard.Merged) Words { return Words{m} }

// Sentence describes a finding: the client, the fault, the message, the time.
func (w Words) Sentence(r *shard.Connection, f ledger.Finding, at time.Time) string {
	when := at.UTC().Format("15:04:05.000") + " UTC"
	noun := w.m.Service.Noun()
	which := w.which(r)
	switch f.Kind {
	case ledger.KindLost:
		switch f.Source {
		case ledger.SourcePublisher:
			return fmt.Sprintf("%s missed %s: sent at %s, published, and confirmed by the service", r.ID, which(f.From, f.To), when)
		case ledger.SourceSubscribers:
			return fmt.Sprintf("%s missed %s, which %s received, the first at %s", r.ID, which(f.From, f.To), f.Note, when)
		case ledger.SourceServer:
			return fmt.Sprintf("%s missed %s: %d arrived, and the server's ledger lists %d more as sent; without numbers it is unknown which",
				r.ID, format.Plural(f.Count, noun, noun+"s"), r.Arrived(), f.Count)
		}
		return fmt.Sprintf("%s missed %s: the number was skipped, noticed at %s", r.ID, which(f.From, f.To), when)
	case ledger.KindUnsent:
		return fmt.Sprintf("%s missed %s: nothing arrived when due, until %s%s", r.ID, format.Count(f.Count, noun), when, instead(r.Record, f))
	case ledger.KindTail:
		return r.ID + " missed " + w.tail(r, f) + " before the stream closed at " + when + listedAsSent(f) + instead(r.Record, f)
	case ledger.KindDuplicated:
		return fmt.Sprintf("%s received %s twice, again at %s", r.ID, which(f.From, f.From), when)
	case ledger.KindReordered:
		return fmt.Sprintf("%s received %s out of order, at %s", r.ID, which(f.From, f.From), when)
	case ledger.KindCorrupted:
		return fmt.Sprintf("%s received %s corrupted at %s: %s", r.ID, which(f.From, f.From), when, w.instead(f.Note))
	case ledger.KindLate:
		return fmt.Sprintf("%s received %s late by %s, at %s", r.ID, which(f.From, f.From), format.Duration(f.Lateness), when)
	case ledger.KindDropped:
		return w.dropped(r, f, when)
	case ledger.KindRefused:
		return fmt.Sprintf("%s was refused at %s (%s)%s", r.ID, when, f.Note, refusedBefore(r.Record, f))
	case ledger.KindRestarted:
		return fmt.Sprintf("%s restarted its numbers at 1 after %s %d, at %s", r.ID, noun, f.From, when)
	case ledger.KindCut:
		return fmt.Sprintf("%s was closed by the service at %s after %s, before the end of its lifetime (end.lifetime)", r.ID, when, format.Duration(f.Lateness))
	case ledger.KindOverdue:
		return fmt.Sprintf("%s was still open at %s after %s, longer than its lifetime (end.lifetime)", r.ID, when, format.Duration(f.Lateness))
	case ledger.KindStrayed:
		return fmt.Sprintf("%s received a %s of another topic at %s: %s", r.ID, noun, when, f.Note)
	case ledger.KindAnnounced:
		return fmt.Sprintf("%s was notified at %s that messages are missing (%s)", r.ID, when, cmp.Or(w.m.Service.Gap, "resume.gap"))
	case ledger.KindIDReset:
		text := fmt.Sprintf("%s had no id to resume from: the service reset it at %s with an empty id field in the %s", r.ID, when, f.Note)
		if f.From > 0 {
			text += ", after " + which(f.From, f.From)
		}
		return text
	case ledger.KindNoID:
		return fmt.Sprintf("%s had no id to resume from at %s: the service had sent none", r.ID, when)
	}
	return fmt.Sprintf("%s: %s at %s", r.ID, f.Kind, when)
}

// which names messages by their numbers, and by their topic where there is one.
func (w Words) which(r *shard.Connection) func(from, to uint64) string {
	topic, _, ok := w.m.Topic(r)
	if !ok {
		topic, _ = w.m.FeedTopic(r)
	}
	return w.named(topic)
}

// named returns a function that names messages of a topic by their numbers; the topic is "" if messages have none.
func (w Words) named(topic string) func(from, to uint64) string {
	noun := w.m.Service.Noun()
	if topic != "" {
		topic = " of topic " + topic
	}
	return func(from, to uint64) string {
		switch {
		case from == 0: // corrupted beyond recognition
			return "a " + noun + topic
		case from == to:
			return fmt.Sprintf("%s %d%s", noun, from, topic)
		case from+1 == to:
			return fmt.Sprintf("%ss %d and %d%s", noun, from, to, topic)
		}
		return fmt.Sprintf("%ss %d to %d%s", noun, from, to, topic)
	}
}

// tail names the messages that are missing at the end of a stream, and the last one that arrived.
func (w Words) tail(r *shard.Connection, f ledger.Finding) string {
	noun := w.m.Service.Noun()
	switch {
	case r.Arrived() == 0:
		return w.which(r)(f.From, f.To) + ": nothing arrived"
	case r.Numbered:
		return fmt.Sprintf("%s: nothing arrived after %s %d", w.which(r)(f.From, f.To), noun, r.Last)
	}
	return fmt.Sprintf("%s: nothing arrived after the first %d", format.Plural(f.Count, noun, noun+"s"), r.Arrived())
}

// listedAsSent states how many of the missing messages the server's own ledger lists as sent; "" if none.
func listedAsSent(f ledger.Finding) string {
	switch {
	case f.Sent == 0:
		return ""
	case f.Count == 1:
		return "; the server's ledger lists it as sent"
	case f.Sent == f.Count:
		return "; the server's ledger lists them as sent"
	}
	return fmt.Sprintf("; the server's ledger lists %d of these %d as sent", f.Sent, f.Count)
}

// instead describes the content of a corrupted message.
func (w Words) instead(note string) string {
	if data := w.m.Service.Data; data != "" {
		return fmt.Sprintf("%q instead of %q", note, data)
	}
	return note
}

// instead names the other events that arrived, if there were at least as many as missing messages.
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
	return fmt.Sprintf("; other events arrived: %s, which message.event of the description does not match", strings.Join(names, ", "))
}

// disconnectedFor returns the part of a sentence that states how long a client had been disconnected when the run ended;
// "" if it was not.
func disconnectedFor(r ledger.Record, f ledger.Finding) string {
	if f.Lateness == 0 {
		return ""
	}
	return fmt.Sprintf(", and was still disconnected when the run ended, %s later%s", format.Duration(f.Lateness), refusals("; it was refused ", r.LastOutage.Refusals))
}

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
		text += ": the id already has a stream, so another client uses this PREFIX, or the service did not end an earlier stream"
	}
	return text
}
