package probe

import "slices"

// selectPublished returns the messages to describe, and adds their event name to m. It returns all messages, with one
// exception: a service may send published messages in several events, such as a message and a preview of a chat room.
// selectPublished then returns only the events of the first name that has each message once.
func (f *findings) selectPublished(m *message, all []series) ([]series, []*unit) {
	var names []string
	for _, u := range units(all) {
		if !slices.Contains(names, u.EventName()) {
			names = append(names, u.EventName())
		}
	}
	events, expected := f.countDelivered(all)
	if len(names) == 1 || events <= expected {
		return all, units(all)
	}
	for _, name := range names {
		selected := named(all, name)
		if events, messages := f.countDelivered(selected); len(name) <= maxQuoted && events == expected && messages == expected {
			m.match.add("event", name, "Events of other names had the same messages.")
			return selected, units(selected)
		}
	}
	return all, units(all)
}

// A delivery is an event of a plain stream with messages that the probe published after the start of that stream.
// Messages from before the start may arrive in a history of the topic.
type delivery struct {
	unit *unit
	seqs []int64 // numbers of the messages, the latest last
}

// deliveries returns the deliveries of each plain stream. It finds none if the probe publishes no {sentAt}.
func (f *findings) deliveries(all []series) (out [][]delivery) {
	for _, messages := range all {
		var found []delivery
		for _, u := range messages.units {
			d := delivery{unit: u}
			for _, p := range f.publishedIn(u) {
				if p.at.Sub(messages.track.headersAt) >= f.session.Pace {
					d.seqs = append(d.seqs, p.seq)
				}
			}
			if messages.track.role == plain && len(d.seqs) > 0 {
				found = append(found, d)
			}
		}
		out = append(out, found)
	}
	return out
}

// findBatch returns an event with a published message that is the latest message of no event on any stream, or nil. An
// event may therefore quote an earlier message.
func (f *findings) findBatch(all []series) *unit {
	deliveries, latest := slices.Concat(f.deliveries(all)...), map[int64]bool{}
	for _, d := range deliveries {
		latest[d.seqs[len(d.seqs)-1]] = true
	}
	for _, d := range deliveries {
		if slices.ContainsFunc(d.seqs, func(seq int64) bool { return !latest[seq] }) {
			return d.unit
		}
	}
	return nil
}

// countDelivered returns the number of events with published messages, and of different published messages, summed
// over the streams.
func (f *findings) countDelivered(all []series) (events, messages int) {
	for _, deliveries := range f.deliveries(all) {
		seqs := map[int64]bool{}
		for _, d := range deliveries {
			for _, seq := range d.seqs {
				seqs[seq] = true
			}
		}
		events, messages = events+len(deliveries), messages+len(seqs)
	}
	return events, messages
}
