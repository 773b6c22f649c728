package service

import "github.com/cespare/xxhash/v2"

func (p *parser) parseShared(f *fields) {
	n := f.valueNode("same")
	if n == nil {
		return
	}
	m := &p.service.Message
	m.content = p.extractor(n, "message.same", &p.service.paths)
	m.Shared = true
	switch {
	case p.service.Finite != nil:
		p.mistakes.add(n.at, "message.same cannot be combined with end.by: 'event'; remove it")
	case m.content.source == fromComment:
		p.mistakes.add(n.at, "message.same must be data, id, json:$.path, data:REGEX or id:REGEX, got %q", n.value)
	case m.Numbered:
		p.mistakes.add(n.at, "message.same cannot be combined with message.seq: numbers are stronger evidence; remove message.same")
	case m.Interval > 0:
		p.mistakes.add(n.at, "message.same cannot be combined with message.every: the interval is stronger evidence; remove message.same")
	}
	if per := f.valueNode("per"); per != nil && per.value != "topic" {
		p.mistakes.add(per.at, "message.per must be 'topic' with message.same, which compares the streams of a topic, got '%v'", per.value)
	}
	m.PerTopic = true
}

// fingerprint returns a hash of the event name and of the part of a message that message.same names. ok is false if the
// message does not have that part.
func (m *Message) fingerprint(b *Block, d *document) (sum uint64, ok bool) {
	v, ok := m.content.find(b, d)
	if !ok {
		return 0, false
	}
	const prime = 0x9e3779b185ebca87
	return (xxhash.Sum64(b.Event)+prime)*prime ^ xxhash.Sum64(v.text), true
}
