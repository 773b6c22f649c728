package shard

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/ledger/feed"
)

// A feedPiece is a part of the unnumbered messages of one topic, in columns. Arrival times and counts are varints of
// the differences from the previous message. An hour of 100 messages per second needs less than 4 MB.
type feedPiece struct {
	Topic   int            `json:"topic"`
	Prints  []byte         `json:"prints,omitempty"` // 8 bytes each
	Times   []byte         `json:"times,omitempty"`  // milliseconds since the previous message
	Counts  []byte         `json:"counts,omitempty"` // difference from the count of the previous message, and flags
	Extras  []ledger.Extra `json:"extras,omitempty"`
	Dropped uint64         `json:"dropped,omitempty"` // messages beyond the limit of a log
}

// feedPieceSize is the maximum number of messages of a piece, which is one value of JSON.
const feedPieceSize = 1 << 17

const maxExtras = 1 << 20 // of all topics

// AddFeed adds the messages of the next topic. It has no effect if l is nil: messages with numbers have no log.
func (s *Shard) AddFeed(l *ledger.Log) {
	if l == nil {
		return
	}
	entries, extras, dropped := l.Entries()
	s.Feeds = append(s.Feeds, &feed.Log{Entries: entries, Extras: extras, Dropped: dropped})
}

// feedPieces yields the messages of each topic in pieces, at least one for each topic.
func (s *Shard) feedPieces() iter.Seq[*feedPiece] {
	return func(yield func(*feedPiece) bool) {
		for topic, l := range s.Feeds {
			piece := feedPiece{Topic: topic, Extras: l.Extras, Dropped: l.Dropped}
			var previous ledger.Entry
			for i := range l.Entries {
				e := l.Entries[i]
				e.At = e.At.Truncate(time.Millisecond)
				piece.add(e, previous)
				previous = e
				if (i+1)%feedPieceSize == 0 {
					if !yield(&piece) {
						return
					}
					piece = feedPiece{Topic: topic}
				}
			}
			if !yield(&piece) {
				return
			}
		}
	}
}

func (p *feedPiece) add(e, previous ledger.Entry) {
	p.Prints = binary.LittleEndian.AppendUint64(p.Prints, e.Print)
	p.Times = binary.AppendVarint(p.Times, (e.At - previous.At).Milliseconds())
	flags := int64(0)
	if e.Live {
		flags = 1
	}
	if e.Repeat {
		flags |= 2
	}
	p.Counts = binary.AppendVarint(p.Counts, (int64(e.Count)-int64(previous.Count))<<2|flags)
}

func (in *boundedReader) feeds(s *Shard) error {
	s.Feeds = nil // of an earlier list with the same key
	extras := 0
	return in.elements("feeds", maxPieces, func() error {
		var piece feedPiece
		if err := jsonv2.UnmarshalDecode(in.json, &piece); err != nil {
			return err
		}
		switch {
		case piece.Topic == len(s.Feeds) && piece.Topic < MaxTopics:
			s.Feeds = append(s.Feeds, &feed.Log{})
		case len(s.Feeds) == 0 || piece.Topic != len(s.Feeds)-1:
			return fmt.Errorf("topics of the feeds must be in order and below %d, got %d at position %d", MaxTopics, piece.Topic, len(s.Feeds))
		}
		if extras += len(piece.Extras); extras > maxExtras {
			return fmt.Errorf("feeds must have at most %d extras, got %d", maxExtras, extras)
		}
		l := s.Feeds[piece.Topic]
		l.Extras, l.Dropped = append(l.Extras, piece.Extras...), l.Dropped+piece.Dropped
		return piece.appendTo(l)
	})
}

func (p *feedPiece) appendTo(l *feed.Log) error {
	n := len(p.Prints) / 8
	if len(p.Prints)%8 != 0 || n > feedPieceSize || len(l.Entries)+n > ledger.MaxEntries {
		return fmt.Errorf("impossible size of a feed: a piece of %d bytes after message %d", len(p.Prints), len(l.Entries))
	}
	var previous ledger.Entry
	if last := len(l.Entries) - 1; last >= 0 {
		previous = l.Entries[last]
	}
	for i := range n {
		elapsed, timeSize := binary.Varint(p.Times)
		count, countSize := binary.Varint(p.Counts)
		if timeSize <= 0 || countSize <= 0 {
			return errors.New("a piece of a feed is truncated")
		}
		p.Times, p.Counts = p.Times[timeSize:], p.Counts[countSize:]
		at, total := previous.At.Milliseconds()+elapsed, int64(previous.Count)+count>>2
		if at < 0 || at > maxLength.Milliseconds() || total < 0 || total > maxConnections {
			return fmt.Errorf("impossible message %d of a feed: at %d ms on %s", len(l.Entries)+1, at, format.Plural(total, "stream", "streams"))
		}
		e := ledger.Entry{
			Print: binary.LittleEndian.Uint64(p.Prints[8*i:]), At: ledger.Instant(at) * ledger.Instant(1e6),
			Count: uint32(total), Live: count&1 != 0, Repeat: count&2 != 0,
		}
		l.Entries = append(l.Entries, e)
		previous = e
	}
	return nil
}

// feedOf returns the messages of the topic of a client; nil if the topic has no feed. A client that is not in the plan
// has topic 0.
func (s *Shard) feedOf(id string) *feed.Log {
	topic := 0
	if n, known := s.Plan.Number(id); known {
		topic = s.Plan.Topic(n)
	}
	if topic >= len(s.Feeds) {
		return nil
	}
	return s.Feeds[topic]
}

func (s *Shard) checkFeeds() error {
	for _, l := range s.Feeds {
		for _, x := range l.Extras {
			if x.After > clamp.Uint64(len(l.Entries)) || x.Count > maxConnections {
				return fmt.Errorf("impossible extra message after number %d of a feed with %s, count %d",
					x.After, format.Plural(len(l.Entries), "message", "messages"), x.Count)
			}
		}
	}
	return nil
}

func (s *Shard) checkFeed(c *ledger.Record) error {
	l := s.feedOf(c.ID)
	if l == nil {
		return fmt.Errorf("client %s has no feed for its topic", c.ID)
	}
	count := clamp.Uint64(len(l.Entries))
	bad := c.Last > count || c.First > c.Last
	for _, h := range c.Holes {
		bad = bad || h[0] <= c.First || h[1] >= c.Last || h[0] > h[1]
	}
	if d := c.Deviations; d != nil {
		for _, o := range d.Overtakes {
			bad = bad || o.Number == 0 || o.By == 0 || max(o.Number, o.By) > count
		}
		for _, a := range d.Repeats {
			bad = bad || a.Extra < 0 || a.Extra >= len(l.Extras)
		}
	}
	if bad {
		return fmt.Errorf("client %s contradicts the messages of its topic", c.ID)
	}
	return nil
}

// A Feed has the unnumbered messages of one topic, as the runners received them.
type Feed struct {
	Topic string // "": the only topic
	Logs  []*feed.Log
	// LogOf maps the index of each runner in Merged.Runners to the index of its log in Logs.
	LogOf map[int]int
}

// Feeds returns a Feed for each topic with unnumbered messages. Runners with the same topic share a Feed. In each log,
// Feeds sets StartedUS to the start of the runner.
func (m *Merged) Feeds() (feeds []*Feed) {
	byTopic := map[string]*Feed{}
	for i := range m.Runners {
		for k, l := range m.Runners[i].feeds {
			name := m.feedTopic(i, k)
			f := byTopic[name]
			if f == nil {
				f = &Feed{Topic: name, LogOf: map[int]int{}}
				byTopic[name] = f
				feeds = append(feeds, f)
			}
			l.StartedUS = m.Runners[i].StartedUS
			f.LogOf[i] = len(f.Logs)
			f.Logs = append(f.Logs, l)
		}
	}
	return feeds
}

// Subscribers yields the records of the clients that received the messages of the Feeds.
func (m *Merged) Subscribers() iter.Seq2[int, *Connection] {
	return cmp.Or(m.FeedConnections, &m.Connections).All()
}

// feedTopic returns the name of a topic by its index; "" without a group, or for a single topic without a name.
func (m *Merged) feedTopic(runner, topic int) string {
	g := m.groupOf(runner)
	if g == nil || g.plan.TopicCount() == 1 && len(g.plan.TopicNames) == 0 {
		return ""
	}
	return g.plan.TopicName(topic)
}

// FeedTopic returns the topic of a client. ok is false if its messages have numbers, or if it has no topic.
func (m *Merged) FeedTopic(c *Connection) (name string, ok bool) {
	if c.Runner >= len(m.Runners) || len(m.Runners[c.Runner].feeds) == 0 {
		return "", false
	}
	topic, known := m.topicIndex(c)
	return m.feedTopic(c.Runner, topic), known && topic < len(m.Runners[c.Runner].feeds)
}

// TopicOf returns the topic of a client of a run that does not publish; "" for a single topic without a name. ok is
// false if the client is unknown.
func (m *Merged) TopicOf(c *Connection) (name string, ok bool) {
	topic, ok := m.topicIndex(c)
	return m.feedTopic(c.Runner, topic), ok
}

func (m *Merged) topicIndex(c *Connection) (topic int, ok bool) {
	g := m.groupOf(c.Runner)
	if g == nil {
		return 0, true
	}
	n, ok := g.plan.Number(c.ID)
	return g.plan.Topic(n), ok
}
