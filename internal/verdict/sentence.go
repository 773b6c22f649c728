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

// A Formatter formats the findings of a run as sentences.
type Formatter struct{ *shard.Merged }

// Sentence describes a finding: the client, the fault, the message, the time.
func (w Formatter) Sentence(r *shard.Connection, f ledger.Finding, at time.Time) string {
	return w.sentence(r, f, at) + explanation(r.Record, f)
}

func (w Formatter) sentence(r *shard.Connection, f ledger.Finding, at time.Time) string {
	clock := format.TimeOfDay(at)
	noun := w.Service.Noun()
	names := w.messageNames(r)
	switch f.Kind {
	case ledger.KindLost:
		switch f.Source {
		case ledger.SourcePublisher:
			return fmt.Sprintf("%s missed %s, published at %s and confirmed by the service", r.ID, names(f.From, f.To), clock)
		case ledger.SourceSubscribers:
			return fmt.Sprintf("%s missed %s, which %s received, the first at %s", r.ID, names(f.From, f.To), f.Note, clock)
		case ledger.SourceServer:
			return fmt.Sprintf("%s missed %s: %d arrived, and the server's ledger lists %d more as sent; without numbers it is unknown which",
				r.ID, format.Plural(f.Count, noun, noun+"s"), r.Arrived(), f.Count)
		}
		return fmt.Sprintf("%s missed %s%s (noticed at %s)", r.ID, names(f.From, f.To), evidenceOf(f.Source, f.To-f.From+1), clock)
	case ledger.KindUnsent:
		return fmt.Sprintf("%s %s, until %s%s", r.ID, predicate(f.Kind, format.Count(f.Count, noun)), clock, otherEvents(r.Record, f))
	case ledger.KindTail:
		return r.ID + " missed " + w.tail(r, f) + " before the stream closed at " + clock + serverText(f) + otherEvents(r.Record, f)
	case ledger.KindDuplicated:
		text := fmt.Sprintf("%s %s, the second time at %s", r.ID, predicate(f.Kind, names(f.From, f.From)), clock)
		if f.To > f.From {
			text += fmt.Sprintf(" after %s %d", noun, f.To)
		}
		return text
	case ledger.KindReordered:
		return fmt.Sprintf("%s %s, at %s", r.ID, predicate(f.Kind, names(f.From, f.From)), clock)
	case ledger.KindCorrupted:
		return fmt.Sprintf("%s %s at %s: %s", r.ID, predicate(f.Kind, names(f.From, f.From)), clock, w.corruption(f))
	case ledger.KindLate:
		return fmt.Sprintf("%s received %s late by %s, at %s", r.ID, names(f.From, f.From), format.Duration(f.Lateness), clock)
	case ledger.KindDropped:
		return w.droppedText(r, f, clock)
	case ledger.KindRefused:
		return fmt.Sprintf("%s was refused at %s (%s)%s", r.ID, clock, f.Note, refusalText(r.Record, f))
	case ledger.KindRestarted:
		return fmt.Sprintf("%s received numbers that restarted at 1 after %s %d, at %s", r.ID, noun, f.From, clock)
	case ledger.KindEndedEarly:
		return fmt.Sprintf("%s was closed by the service at %s after %s, before the end of its lifetime (end.lifetime)", r.ID, clock, format.Duration(f.Lateness))
	case ledger.KindOverdue:
		return fmt.Sprintf("%s was still open at %s after %s, longer than its lifetime (end.lifetime)", r.ID, clock, format.Duration(f.Lateness))
	case ledger.KindMisrouted:
		return fmt.Sprintf("%s received a %s of another topic at %s: %s", r.ID, noun, clock, f.Note)
	case ledger.KindAnnounced:
		return fmt.Sprintf("%s was notified at %s that messages are missing (%s)", r.ID, clock, cmp.Or(w.Service.Gap, "resume.gap"))
	case ledger.KindIDReset:
		text := fmt.Sprintf("%s had no id to resume from: the service reset it at %s with an empty id field in the %s", r.ID, clock, f.Note)
		if f.From > 0 {
			text += ", after " + names(f.From, f.From)
		}
		return text
	case ledger.KindNoID:
		return fmt.Sprintf("%s had no id to resume from at %s: the service had sent none", r.ID, clock)
	}
	return fmt.Sprintf("%s: %s at %s", r.ID, f.Kind, clock)
}

func evidenceOf(source ledger.Source, messages uint64) string {
	switch source {
	case ledger.SourcePublisher:
		return ", which the service confirmed"
	case ledger.SourceSubscribers:
		return ", which other clients received"
	case ledger.SourceServer:
		return ", which the server's ledger lists as sent"
	}
	return ": the " + format.Form(messages, "number was", "numbers were") + " skipped"
}

func predicate(kind ledger.Kind, messages string) string {
	switch kind { //nolint:exhaustive // the others have different words for one client and for several
	case ledger.KindUnsent:
		return "missed " + messages + ": nothing arrived when due"
	case ledger.KindDuplicated:
		return "received " + messages + " twice"
	case ledger.KindReordered:
		return "received " + messages + " out of order"
	}
	return "received " + messages + " corrupted"
}

func (w Formatter) group(b *bundle, runner int) string {
	clock := ", " + period(b.first, b.last)
	if b.clients == 1 {
		if b.isMixed || !b.numbered {
			return fmt.Sprintf("%s %s%s; first: %s", b.id, w.phrase(b), clock, b.text)
		}
		if b.kind == ledger.KindDuplicated {
			return fmt.Sprintf("%s received %s again, %d times%s", b.id, w.messages(b), b.findings, clock)
		}
		return fmt.Sprintf("%s %s, %d times%s", b.id, w.phrase(b), b.findings, clock)
	}
	subject := format.Thousands(b.clients) + " clients"
	if b.kind == ledger.KindDropped || b.kind == ledger.KindEndedEarly || b.kind == ledger.KindOverdue {
		subject = format.Thousands(b.clients) + " streams"
	}
	if b.clients == w.Plan.Connections {
		subject = "all " + subject
	}
	if runner > 0 {
		subject += fmt.Sprintf(" of runner %d", runner)
	}
	text := subject + " " + w.phrase(b) + clock
	if b.kind == ledger.KindDropped && b.longest > 0 {
		text += ", and were still disconnected when the run ended, up to " + format.Duration(b.longest) + " later"
	}
	if b.hasDetails || b.kind != ledger.KindDropped && (b.isMixed || !b.numbered) {
		return text + "; first: " + b.text
	}
	return text + " (first: " + b.id + ")"
}

func (w Formatter) phrase(b *bundle) string {
	noun := w.Service.Noun()
	verb, possessive := format.Form(b.clients, "was", "were"), format.Form(b.clients, "its", "their")
	messages := w.messages(b)
	switch b.kind {
	case ledger.KindLost:
		count := b.count
		if !b.isMixed {
			count = b.subject.count // the clients missed the same messages
		}
		return "missed " + messages + evidenceOf(b.source, count)
	case ledger.KindTail:
		return "missed " + messages + ": nothing more arrived before the end of the stream"
	case ledger.KindUnsent, ledger.KindDuplicated, ledger.KindReordered, ledger.KindCorrupted:
		return predicate(b.kind, messages)
	case ledger.KindLate:
		return "received " + messages + " late, by up to " + format.Duration(b.longest)
	case ledger.KindDropped:
		return fmt.Sprintf("%s, %s", endText(b.reason, verb), w.lastMessages(b))
	case ledger.KindRefused:
		return fmt.Sprintf("%s refused (%s)", verb, b.reason)
	case ledger.KindRestarted:
		return "received numbers that restarted at 1"
	case ledger.KindEndedEarly:
		return verb + " closed by the service before the end of " + possessive + " lifetime (end.lifetime)"
	case ledger.KindOverdue:
		return verb + " open for longer than " + possessive + " lifetime (end.lifetime)"
	case ledger.KindMisrouted:
		return fmt.Sprintf("received %s of other topics", format.Plural(b.count, noun, noun+"s"))
	case ledger.KindAnnounced:
		return verb + " notified that messages are missing"
	case ledger.KindIDReset:
		return "had no id to resume from, because the service had reset it"
	case ledger.KindNoID:
		return "had no id to resume from, because the service had sent none"
	}
	return string(b.kind)
}

// messages names the messages of a group if they are the same for all clients; otherwise it states their number.
func (w Formatter) messages(b *bundle) string {
	noun := w.Service.Noun()
	switch {
	case !b.isMixed && b.numbered:
		return w.nameOf(b.topic)(b.from, b.to)
	case !b.isMixed && b.clients > 1 && b.subject.count > 0:
		return format.Plural(b.subject.count, noun, noun+"s") + " each"
	case b.clients > 1:
		return "a total of " + format.Plural(b.count, noun, noun+"s")
	}
	return format.Plural(b.count, noun, noun+"s")
}

func (w Formatter) lastMessages(b *bundle) string {
	noun := w.Service.Noun()
	switch {
	case b.to == 0:
		return "before the first " + noun
	case b.from != b.to:
		return fmt.Sprintf("after %ss %d to %d", noun, b.from, b.to)
	}
	return fmt.Sprintf("each after %s %d", noun, b.from)
}

// period formats a time period: to the millisecond if both times are equal, otherwise to the second.
func period(first, last time.Time) string {
	if at := format.TimeOfDay(first); at == format.TimeOfDay(last) {
		return "at " + at
	}
	from, to := format.Clock(format.Unix(first)), format.Clock(format.Unix(last))
	if from == to {
		return "at " + from + " UTC"
	}
	return "from " + from + " to " + to + " UTC"
}

// messageNames returns a function that names messages by their numbers, and by their topic if there is one.
func (w Formatter) messageNames(r *shard.Connection) func(from, to uint64) string {
	topic, _, ok := w.Topic(r)
	if !ok {
		topic, _ = w.FeedTopic(r)
	}
	return w.nameOf(topic)
}

func (w Formatter) nameOf(topic string) func(from, to uint64) string {
	noun := w.Service.Noun()
	if topic != "" {
		topic = " of topic " + topic
	}
	return func(from, to uint64) string {
		switch {
		case from == 0: // a corrupted message without a number
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
func (w Formatter) tail(r *shard.Connection, f ledger.Finding) string {
	noun := w.Service.Noun()
	switch {
	case r.Arrived() == 0:
		return w.messageNames(r)(f.From, f.To) + ": nothing arrived"
	case r.Numbered:
		return fmt.Sprintf("%s: nothing arrived after %s %d", w.messageNames(r)(f.From, f.To), noun, r.Last)
	}
	return fmt.Sprintf("%s: nothing arrived after the first %s", format.Plural(f.Count, noun, noun+"s"), format.Form(r.Arrived(), "one", fmt.Sprint(r.Arrived())))
}

// serverText states how many of the missing messages the server's ledger lists as sent; "" if none.
func serverText(f ledger.Finding) string {
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

// corruption describes a corrupted message. Note is the content of the message if messages have an interval and the
// number of this message is possible; otherwise Note is the fault.
func (w Formatter) corruption(f ledger.Finding) string {
	if data := w.Service.Data; data != "" && w.Service.HasInterval() && f.Source != ledger.SourceNumber {
		return fmt.Sprintf("%q instead of %q", f.Note, data)
	}
	return f.Note
}

// otherEvents describes other events, if at least as many of them arrived as messages are missing; otherwise "".
func otherEvents(r ledger.Record, f ledger.Finding) string {
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

// explanation explains a fault by the numbers or the reconnection time that the client received; "" if they explain
// nothing.
func explanation(r ledger.Record, f ledger.Finding) string {
	switch {
	case f.Kind == ledger.KindLost && f.Source == "" && r.Messages > 0:
		return "; other messages have numbers of the same sequence, so one of them may be lost instead"
	case f.Kind == ledger.KindDropped:
		return retryText(r.LastOutage)
	}
	return overflowText(r, f)
}

// overflowText states that the highest number before a fault is the limit of a common integer type, or returns "".
func overflowText(r ledger.Record, f ledger.Finding) string {
	highest := r.Last
	switch f.Kind { //nolint:exhaustive // the other kinds of faults are not consequences of an overflow
	case ledger.KindLost, ledger.KindDuplicated, ledger.KindReordered:
	case ledger.KindCorrupted: // a negative number
		if f.From > 0 {
			highest = f.From - 1
		}
	default:
		return ""
	}
	for _, bits := range []int{15, 16, 31, 32, 63} {
		if highest == 1<<bits-1 {
			return fmt.Sprintf("; the highest number was %d (2^%d - 1), so the counter of the service may have overflowed", highest, bits)
		}
	}
	if highest == 1<<53 {
		return fmt.Sprintf("; the highest number was %d (2^53), beyond which counters in JavaScript do not increase", highest)
	}
	return ""
}

// disconnectedFor states how long a client had been disconnected when the run ended; "" if it was connected.
func disconnectedFor(r ledger.Record, f ledger.Finding) string {
	if f.Lateness == 0 {
		return ""
	}
	return fmt.Sprintf(", and was still disconnected when the run ended, %s later%s", format.Duration(f.Lateness), refusals("; it was refused ", r.LastOutage.Refusals))
}

// refusalText describes the attempts of a refused client if there were several, and explains 409 Conflict.
func refusalText(r ledger.Record, f ledger.Finding) (text string) {
	if n := r.RefusedAttempts(); n > 1 {
		first := f.At
		for _, refusal := range r.Refusals {
			first = min(first, refusal.First)
		}
		text = fmt.Sprintf(", as in all %d attempts within %s", n, format.Duration(f.At-first))
		if len(r.Refusals) > 1 {
			text = refusals(" after "+format.Duration(f.At-first)+" of attempts, which were refused ", r.Refusals)
		}
	}
	if strings.HasPrefix(f.Note, causeConflict) {
		text += ": the id already has a stream, so another client uses this PREFIX, or the service did not end an earlier stream"
	}
	return text
}
