package service

import (
	"bytes"
)

// Block is what stands between two blank lines of a stream. Its slices are read while a call runs, and never
// kept; a [Reading] points into them.
type Block struct {
	Event                      []byte // of the last event line; empty for none
	Data                       []byte // data lines, joined by one LF
	Comment                    []byte // comment lines, each without its colon and one space, joined by one LF
	ID                         []byte // of this block
	HasData, HasComment, HasID bool
}

// matcher says which blocks are meant: those that have all that it names.
type matcher struct {
	event, data, comment *string
	onlyComments         bool // a block of nothing else, whatever they say
}

func (m *matcher) empty() bool {
	return m.event == nil && m.data == nil && m.comment == nil && !m.onlyComments
}

func (m *matcher) matches(b *Block) bool {
	switch {
	case m.empty():
		return false
	case m.onlyComments:
		return b.HasComment && !b.HasData && len(b.Event) == 0
	case m.event != nil && !isEvent(b.Event, *m.event):
		return false
	case m.data != nil && (!b.HasData || string(b.Data) != *m.data):
		return false
	case m.comment != nil && (!b.HasComment || string(b.Comment) != *m.comment):
		return false
	}
	return true
}

func (m *matcher) equals(o *matcher) bool {
	same := func(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return m.onlyComments == o.onlyComments && same(m.event, o.event) && same(m.data, o.data) && same(m.comment, o.comment)
}

// HeartbeatIsComment says that heartbeats are blocks of nothing but comments, or comment lines by themselves.
func (s *Service) HeartbeatIsComment() bool { return s.heartbeat.onlyComments }

// unnamed is what descriptions and browsers call an event without a name.
const unnamed = "message"

// EventName is the name of the event as a description has it.
func (b *Block) EventName() string {
	if len(b.Event) == 0 {
		return unnamed
	}
	return string(b.Event)
}

// isEvent compares the name of an event without a copy of it.
func isEvent(name []byte, want string) bool {
	if len(name) == 0 {
		return want == unnamed
	}
	return string(name) == want
}

// Kind is what a block is.
type Kind int

// What a block can be.
const (
	Other     Kind = iota // neither message nor heartbeat
	Heartbeat             // keeps a stream alive, and is never a message
	Delivery              // a message of this run
	Gap                   // the service says that messages were missed (resume.gap)
	Foreign               // a message with the marker of somebody else
	Stray                 // a message of this run on a stream of another topic
	Unmarked              // an event that message.event names, without the run's marker
)

func (k Kind) String() string {
	return [...]string{"other", "heartbeat", "message", "gap", "foreign", "stray", "unmarked"}[k]
}

// Reading is what was read in a block.
type Reading struct {
	Kind Kind
	// Seq is the number of a message, if HasSeq.
	Seq int64
	// SentAt is when a message was sent, in microseconds since 1970, if HasSentAt. The resolution is that of the
	// service: it may send whole seconds.
	SentAt int64
	// ID is what a stream sends to go on behind this message, with resume.id only; it lies in the block.
	ID []byte

	HasSeq, HasSentAt bool
	// OtherID reports that message.every is set and the id that message.seq names does not count 1, 2, 3 …: the interval
	// decides, so the message is intact.
	OtherID bool
	// Err says why a message is not what the description says: ErrMissing, ErrNumber (of its number), ErrJSON,
	// ErrData, ErrSum or ErrMarker; nil where all is well. Such a message is corrupted, except that without a
	// number (ErrMissing) the clock may still count it; where the description asks for a checksum that is ErrSum.
	Err error
}

// Reader reads the blocks of one run.
type Reader struct {
	service *Service
	run     string
	marker  []byte
	sum     uint32 // of the marker
	family  []byte // what the markers of all topics of the run begin with, nil where streams may bring other topics
}

// Reader returns a reader for a run with that marker. With an empty one messages of every run count.
func (s *Service) Reader(run string) *Reader {
	return &Reader{s, run, []byte(run), markerSum([]byte(run)), nil}
}

// Among has the reader tell messages of other topics of the run, whose markers begin with family, from those of others,
// where a stream asks for one topic.
func (r *Reader) Among(family string) *Reader {
	if s := r.service; s.Publish != nil && s.Publish.Uses(Topic) && !s.HasURL {
		r.family = []byte(family)
	}
	return r
}

// Read reports what a block is.
func (r *Reader) Read(b *Block) (out Reading) {
	s := r.service
	switch {
	case s.gap.matches(b):
		out.Kind = Gap
		return out
	case s.heartbeat.matches(b):
		out.Kind = Heartbeat
		return out
	case !b.HasData || s.Then != nil && isEvent(b.Event, s.Then.Event):
		return out
	case !s.Message.named(b.Event):
		s.Message.otherNumber(b, &out)
		return out
	}
	var d document
	valid := true
	if len(s.paths) > 0 {
		d, valid = parseJSON(b.Data, s.paths)
	}
	kind, marker := r.owner(b, &d, valid)
	if sums := s.Message.Summed && valid; sums || kind == Delivery {
		m := s.read(b, &d, &out)
		if sums {
			kind = r.verify(kind, marker, &m, &out)
		}
	}
	if kind == Foreign && len(r.family) > 0 && bytes.HasPrefix(marker.text, r.family) {
		kind = Stray
	}
	if kind != Delivery {
		return Reading{Kind: kind}
	}
	out.Kind = Delivery
	if !valid {
		out.Err = ErrJSON
	} else if s.Message.data != nil && string(b.Data) != *s.Message.data {
		out.Err = ErrData
	}
	return out
}

// otherNumber reads the id of an event that is not a message. With message.every and ids of the stream it uses a number too.
func (m *Message) otherNumber(b *Block, out *Reading) {
	if m.Interval > 0 && m.seq.from == fromID {
		if v, ok := m.seq.find(b, nil); ok {
			out.Seq, out.HasSeq = parseID(v.text)
		}
	}
}

// named says whether messages have that event.
func (m *Message) named(event []byte) bool {
	for _, name := range m.event {
		if isEvent(event, name) {
			return true
		}
	}
	return m.event == nil
}

// owner returns whether a block is a message of this run, of another run (Foreign), or has no marker: Unmarked if message.event names
// its event, otherwise Other.
// Broken JSON that has the text of our marker in it, or half of it, is a broken message of ours.
func (r *Reader) owner(b *Block, d *document, valid bool) (kind Kind, marker value) {
	s := r.service
	if s.Message.marker.from == fromJSON && !valid {
		if r.run == "" || r.mentioned(b.Data) {
			return Delivery, marker
		}
		return s.Message.withoutMarker(), marker
	}
	marker, ok := s.Message.marker.find(b, d)
	switch {
	case !s.Message.Marked || r.run == "":
		return Delivery, marker
	case !ok || !marker.scalar:
		return s.Message.withoutMarker(), marker
	case string(marker.text) == r.run:
		return Delivery, marker
	}
	return Foreign, marker
}

// withoutMarker returns the kind of an event that fits message.event and has no marker.
func (m *Message) withoutMarker() Kind {
	if m.event != nil {
		return Unmarked
	}
	return Other
}

// mentioned says that our marker is in broken JSON, or one half of it: the marker may be what broke it.
func (r *Reader) mentioned(data []byte) bool {
	half := len(r.marker) / 2
	return bytes.Contains(data, r.marker) || half >= 4 && (bytes.Contains(data, r.marker[:half]) || bytes.Contains(data, r.marker[half:]))
}

// read takes number, time, checksum and id out of a message.
func (s *Service) read(b *Block, d *document, out *Reading) (m summed) {
	ok := false
	if s.Message.Numbered {
		m.seq, ok = s.Message.seq.find(b, d)
		switch {
		case !ok:
			out.Err = ErrMissing
		case s.Message.Interval > 0 && s.Message.seq.from == fromID:
			out.Seq, out.HasSeq = parseID(m.seq.text)
			out.OtherID = !out.HasSeq && len(m.seq.text) > 0
		case !m.seq.scalar:
			out.Err = ErrNumber
		default:
			if out.Seq, out.HasSeq = parseSeq(m.seq.text); !out.HasSeq {
				out.Seq, out.Err = 0, ErrNumber
			}
		}
	}
	if m.sent, ok = s.Message.sent.find(b, d); ok && m.sent.scalar {
		if out.SentAt, out.HasSentAt = parseTime(m.sent.text); !out.HasSentAt {
			out.SentAt = 0
		}
	}
	if v, ok := s.Message.sum.find(b, d); ok && v.scalar {
		m.sum, m.there = parseSum(v.text)
	}
	if v, ok := s.resumeID.find(b, d); ok && v.scalar && !v.decoded {
		out.ID = v.text
	}
	return m
}

// Client is the value that the second request needs ({client}), if the block is the one that it waits for.
func (s *Service) Client(b *Block) (client string, ok bool) {
	if s.Then == nil || !isEvent(b.Event, s.Then.Event) {
		return "", false
	}
	var d document
	if len(s.clientPaths) > 0 {
		d, ok = parseJSON(b.Data, s.clientPaths)
		if !ok {
			return "", false
		}
	}
	v, ok := s.client.find(b, &d)
	if !ok || !v.scalar {
		return "", false
	}
	return string(v.text), true
}
