package service

import (
	"bytes"
	"unicode/utf8"
)

// A Block is the text between two blank lines of a stream. A [Reading] or a [Chunk] may point into its slices.
type Block struct {
	Event                      []byte // value of the last event line, or empty
	Data                       []byte // data lines, joined by LF
	Comment                    []byte // comment lines without the colon and one space, joined by LF
	ID                         []byte // value of the last id line of this block
	HasData, HasComment, HasID bool
}

// A matcher matches a block that has all fields of the matcher. A matcher without fields matches no block.
type matcher struct {
	event, data, comment *string
	onlyComments         bool // the block has a comment with any text, but neither an event name nor data
}

func (m *matcher) isEmpty() bool {
	return m.event == nil && m.data == nil && m.comment == nil && !m.onlyComments
}

func (m *matcher) matches(b *Block) bool {
	switch {
	case m.isEmpty():
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

// HeartbeatIsComment reports whether heartbeats are comments with any text.
func (s *Service) HeartbeatIsComment() bool { return s.heartbeat.onlyComments }

// unnamed is the name of an event without an event line, in descriptions and in browsers.
const unnamed = "message"

// EventName returns the name of the event, or "message" if the block has no event line.
func (b *Block) EventName() string {
	if len(b.Event) == 0 {
		return unnamed
	}
	return string(b.Event)
}

// isEvent reports whether want is the name of an event. name is the value of its event line. isEvent does not allocate.
func isEvent(name []byte, want string) bool {
	if len(name) == 0 {
		return want == unnamed
	}
	return string(name) == want
}

// A Kind is the kind of a block.
type Kind int

// The kinds of blocks.
const (
	Other      Kind = iota // none of the other kinds
	Heartbeat              // keeps a stream alive
	Delivery               // a message of this run
	Gap                    // the service announces missing messages (resume.gap)
	Foreign                // a message with the marker of another run, or, without WithFamily, of another topic
	OtherTopic             // with WithFamily, a message of this run on a stream of another topic
	Unmarked               // an event that message.event names, without a marker
)

// A Reading is the content of a block.
type Reading struct {
	Kind Kind
	// Seq is the number of a message, if HasSeq. With message.every, another event may have a number too.
	Seq int64
	// SentAt is the send time of a message in microseconds since 1970, if HasSentAt. The service may round it to
	// seconds.
	SentAt int64
	// ID is the value of resume.id, from which a client resumes after this message. It may point into the block. It is
	// nil if the description has no resume.id, or if the block has no such text or number. It is also nil if the value
	// contains CR, LF or NUL, which a request cannot send.
	ID []byte

	// Fingerprint is a hash of the part of a message that all streams of a topic receive, if message.same is set.
	Fingerprint uint64

	HasSeq, HasSentAt bool
	// OtherID reports whether message.every is set and message.seq reads an id that is not a number of at least 1. Such
	// an id is not an error: the message is counted by interval.
	OtherID bool
	// Err is nil, or the reason why a message does not match the description. ErrMissing and ErrNumber are errors of
	// its number; the others are ErrJSON, ErrData, ErrUTF8, ErrSum and ErrMarker. Such a message is corrupted; with
	// ErrMissing, it may be counted by interval. If the description has a checksum, the error of a missing number is
	// ErrSum.
	Err error
}

// A Reader reads the blocks of one run.
type Reader struct {
	service *Service
	run     string
	marker  []byte
	sum     uint32 // markerSum of the marker
	family  []byte // common prefix of the markers of all topics of the run; nil: messages of other topics are Foreign
}

// Reader returns a reader for the messages with the marker run, or for the messages of all runs if run is empty.
func (s *Service) Reader(run string) *Reader {
	return &Reader{s, run, []byte(run), markerSum([]byte(run)), nil}
}

// WithFamily makes the reader classify messages of other topics of the run as OtherTopic instead of Foreign. Their
// markers are family and a number, which may be corrupted. WithFamily has no effect if streams may receive other
// topics: if publish has no {topic}, or if url(n) returns the URL.
func (r *Reader) WithFamily(family string) *Reader {
	if s := r.service; s.Publish.Uses(Topic) && !s.HasURL {
		r.family = []byte(family)
	}
	return r
}

// Read returns the content of a block.
func (r *Reader) Read(b *Block) (out Reading) {
	s := r.service
	switch {
	case s.gap.matches(b):
		out.Kind = Gap
		return out
	case s.heartbeat.matches(b):
		out.Kind = Heartbeat
		return out
	case !b.HasData || s.SecondRequest != nil && isEvent(b.Event, s.SecondRequest.Event):
		return out
	case !s.Message.HasName(b.Event):
		s.Message.otherNumber(b, &out)
		return out
	}
	d, valid := s.parse(b.Data)
	defer documents.Put(d)
	kind, marker := r.classifyOwner(b, d, valid)
	if sums := s.Message.Summed && valid; sums || kind == Delivery {
		m := s.read(b, d, &out)
		if sums {
			kind = r.verify(kind, marker, &m, &out)
		}
	}
	if topic, ok := bytes.CutPrefix(marker.text, r.family); ok && kind == Foreign && len(r.family) > 0 && !bytes.ContainsRune(topic, '.') {
		kind = OtherTopic // a topic with a dot belongs to another run, whose test id begins with that of this run
	}
	if kind == Delivery && s.Message.Shared {
		if out.Fingerprint, valid = s.Message.fingerprint(b, d); !valid {
			kind = Other
		}
	}
	if kind != Delivery {
		return Reading{Kind: kind}
	}
	out.Kind = Delivery
	if !valid {
		out.Err = ErrJSON
	} else if s.Message.data != nil && string(b.Data) != *s.Message.data {
		out.Err = ErrData
	} else if out.Err == nil && !s.Message.Shared && !utf8.Valid(b.Data) {
		out.Err = ErrUTF8
	}
	return out
}

// otherNumber reads the number of an event that is not a message. Such an event has a number only with message.every
// and numbers in ids.
func (m *Message) otherNumber(b *Block, out *Reading) {
	if m.Interval > 0 && m.seq.source == fromID {
		if v, ok := m.seq.find(b, nil); ok {
			out.Seq, out.HasSeq = parseID(v.text)
		}
	}
}

// HasName reports whether message.event allows the name of an event.
func (m *Message) HasName(event []byte) bool {
	for _, name := range m.event {
		if isEvent(event, name) {
			return true
		}
	}
	return m.event == nil
}

// classifyOwner returns Delivery for a message with the marker of the reader, and Foreign for one with any other
// marker. A block without a marker is Unmarked if message.event names it, otherwise Other. If the description or the
// reader has no marker, each block is a Delivery. Invalid JSON with the marker of the reader, or half of it, is a
// corrupted Delivery.
func (r *Reader) classifyOwner(b *Block, d *document, valid bool) (kind Kind, marker value) {
	s := r.service
	if s.Message.marker.source == fromJSON && !valid {
		if r.run == "" || r.containsMarker(b.Data) {
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

func (m *Message) withoutMarker() Kind {
	if m.event != nil {
		return Unmarked
	}
	return Other
}

// containsMarker reports whether invalid JSON contains the marker of this run, or a half of at least 4 bytes. A half is
// enough because the other half may be corrupted.
func (r *Reader) containsMarker(data []byte) bool {
	half := len(r.marker) / 2
	return bytes.Contains(data, r.marker) || half >= 4 && (bytes.Contains(data, r.marker[:half]) || bytes.Contains(data, r.marker[half:]))
}

// read reads the number, time and id of a message into out. It returns the checksum with the values that it covers.
func (s *Service) read(b *Block, d *document, out *Reading) (m checksumInput) {
	ok := false
	if s.Message.Numbered {
		m.seq, ok = s.Message.seq.find(b, d)
		switch {
		case !ok:
			out.Err = ErrMissing
		case s.Message.Interval > 0 && s.Message.seq.source == fromID:
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
		m.sum, m.present = parseSum(v.text)
	}
	if v, ok := s.resumeID.find(b, d); ok && v.scalar && !bytes.ContainsAny(v.text, "\r\n\x00") {
		out.ID = v.text
	}
	return m
}

// Client returns the value of {client} in a block. With connect.then, only its event has the value. ok is false if the
// block has no value.
func (s *Service) Client(b *Block) (client string, ok bool) {
	if s.SecondRequest == nil && s.client.source == fromNowhere || s.SecondRequest != nil && !isEvent(b.Event, s.SecondRequest.Event) {
		return "", false
	}
	d := new(document)
	if len(s.clientPaths) > 0 && !parseJSON(d, b.Data, branches(s.clientPaths)) {
		return "", false
	}
	v, ok := s.client.find(b, d)
	if !ok || !v.scalar {
		return "", false
	}
	return string(v.text), true
}
