package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// Sentence puts a finding into words: what it is, on which device, and when.
func Sentence(r ledger.Record, f ledger.Finding, at time.Time) string {
	when := at.UTC().Format("15:04:05.000") + " UTC"
	switch f.Kind {
	case ledger.KindLost:
		if f.Note != "" {
			return fmt.Sprintf("%s missed %s: %s, but nothing came before the stream ended at %s", r.ID, noops(f.From, f.To), f.Note, when)
		}
		return fmt.Sprintf("%s missed %s: the number was skipped, noticed at %s", r.ID, noops(f.From, f.To), when)
	case ledger.KindUnsent:
		return fmt.Sprintf("%s missed %d: the stream was silent for that long before %s%s", r.ID, f.Count, when, instead(r, f))
	case ledger.KindTail:
		return fmt.Sprintf("%s missed %d: the stream was silent from noop %d to its end at %s%s", r.ID, f.Count, f.From, when, instead(r, f))
	case ledger.KindDuplicated:
		return fmt.Sprintf("%s received noop %d twice, again at %s", r.ID, f.From, when)
	case ledger.KindReordered:
		return fmt.Sprintf("%s received noop %d out of order, at %s", r.ID, f.From, when)
	case ledger.KindCorrupted:
		return fmt.Sprintf("%s received noop %d corrupted at %s: %q instead of \"0\"", r.ID, f.From, when, f.Note)
	case ledger.KindLate:
		return fmt.Sprintf("%s received noop %d late by %s, at %s", r.ID, f.From, f.Lateness.Round(time.Millisecond), when)
	case ledger.KindDropped:
		return fmt.Sprintf("%s was dropped at %s (%s) after %d noops", r.ID, when, f.Note, r.Received)
	case ledger.KindRefused:
		return fmt.Sprintf("%s was refused at %s (%s)%s", r.ID, when, f.Note, refusedBefore(r, f))
	case ledger.KindRestarted:
		return fmt.Sprintf("%s was numbered anew from 1 after noop %d, at %s", r.ID, f.From, when)
	}
	return fmt.Sprintf("%s: %s at %s", r.ID, f.Kind, when)
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
		text = fmt.Sprintf(", as in all %d attempts of %s", n, round(f.At-first))
		if len(r.Refusals) > 1 {
			text = refusals(" after "+round(f.At-first).String()+" of attempts, which were refused ", r.Refusals)
		}
	}
	if strings.HasPrefix(f.Note, taken) {
		text += ": the id has a stream already, so another client uses this PREFIX, or the service did not end an earlier stream"
	}
	return text
}

func noops(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("noop %d", from)
	}
	return fmt.Sprintf("noops %d to %d", from, to)
}
