package shard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/sse-soak/sse-soak/internal/clamp"
)

// publishedHead is what the file has of Published beside the messages.
type publishedHead struct {
	Topics    []string   `json:"topics"`
	Rate      float64    `json:"rate"`
	StartedUS int64      `json:"started_unix_us"`
	Planned   uint64     `json:"planned"`
	Finished  bool       `json:"finished"`
	Sent      []int      `json:"sent"` // by topic
	Lag       *Histogram `json:"lag"`
	Answer    *Histogram `json:"answer"`
	Failed    []Failure  `json:"failed,omitempty"`
	MaxBodyUS int64      `json:"max_body_us,omitempty"`
}

// piece is how many characters of a column stand in one string: a reader holds a value whole.
const piece = 1 << 20

// MarshalJSON writes what write does.
func (p *Published) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := p.write(&b)
	return b.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON wrote, and refuses what no publisher sends.
func (p *Published) UnmarshalJSON(text []byte) error {
	got, err := newBounded(bytes.NewReader(text), &counter{n: int64(len(text))}).published()
	if err != nil {
		return err
	}
	if got == nil {
		return errors.New("what was published is null")
	}
	p.adopt(got)
	return nil
}

func (p *Published) adopt(q *Published) {
	p.Topics, p.Rate, p.StartedUS, p.Planned, p.Finished = q.Topics, q.Rate, q.StartedUS, q.Planned, q.Finished
	p.Lag, p.Answer, p.Failed, p.MaxBodyUS, p.sent, p.decoded = q.Lag, q.Answer, q.Failed, q.MaxBodyUS, q.sent, nil
}

// write writes the object. The columns of all topics are joined, and cut into pieces.
func (p *Published) write(w io.Writer) error {
	head := publishedHead{
		Topics: p.Topics, Rate: p.Rate, StartedUS: p.StartedUS, Planned: p.Planned, Finished: p.Finished,
		Lag: p.Lag, Answer: p.Answer, Failed: p.Failed, MaxBodyUS: p.MaxBodyUS, Sent: make([]int, len(p.sent)),
	}
	for i := range p.sent {
		head.Sent[i] = p.sent[i].count
	}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if _, err := w.Write(text[:len(text)-1]); err != nil {
		return err
	}
	if err := p.writeColumn(w, "lags", func(c *column) []byte { return c.lags }); err != nil {
		return err
	}
	if err := p.writeColumn(w, "answers", func(c *column) []byte { return c.answers }); err != nil {
		return err
	}
	_, err = io.WriteString(w, "}")
	return err
}

func (p *Published) writeColumn(w io.Writer, name string, of func(*column) []byte) error {
	if _, err := fmt.Fprintf(w, ",%q:[\"", name); err != nil {
		return err
	}
	room := piece
	for i := range p.sent {
		for text := of(&p.sent[i]); len(text) > 0; {
			if room == 0 {
				if _, err := io.WriteString(w, `","`); err != nil {
					return err
				}
				room = piece
			}
			n := min(room, len(text))
			if _, err := w.Write(text[:n]); err != nil {
				return err
			}
			text, room = text[n:], room-n
		}
	}
	_, err := io.WriteString(w, `"]`)
	return err
}

// published reads the object, the columns piece by piece; nil is null.
func (in *bounded) published() (*Published, error) {
	first, err := in.json.ReadToken()
	if err != nil || first.Kind() == 'n' {
		return nil, err
	}
	if first.Kind() != '{' {
		return nil, errors.New("what was published is no object")
	}
	var lags, answers []byte
	rest := bytes.NewBufferString("{")
	err = in.members("what was published", func(key string) (err error) {
		switch key {
		case "lags":
			lags, err = in.joined(key)
		case "answers":
			answers, err = in.joined(key)
		default:
			err = in.keep(key, rest)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	rest.WriteByte('}')
	var head publishedHead
	if err := json.Unmarshal(rest.Bytes(), &head); err != nil {
		return nil, err
	}
	if err := head.check(); err != nil {
		return nil, fmt.Errorf("what was published: %w", err)
	}
	p := &Published{
		Topics: head.Topics, Rate: head.Rate, StartedUS: head.StartedUS, Planned: head.Planned, Finished: head.Finished,
		Lag: head.Lag, Answer: head.Answer, Failed: head.Failed, MaxBodyUS: head.MaxBodyUS, sent: make([]column, len(head.Topics)),
	}
	return p, p.cut(head.Sent, lags, answers)
}

// mostJoined is how long a column can be: mostly a message takes one or two characters of it; six where it was
// refused after seconds, or was sent a day late.
const mostJoined = 6 * MostPublished

// joined reads a list of strings as one.
func (in *bounded) joined(name string) (out []byte, err error) {
	token, err := in.json.ReadToken()
	if err != nil || token.Kind() == 'n' {
		return nil, err
	}
	if token.Kind() != '[' {
		return nil, fmt.Errorf("the %s of what was published are no list", name)
	}
	for in.json.PeekKind() != ']' {
		var text string
		if err := jsonv2.UnmarshalDecode(in.json, &text); err != nil {
			return nil, err
		}
		if len(out)+len(text) > mostJoined {
			return nil, fmt.Errorf("the %s of what was published are over %d MiB", name, mostJoined>>20)
		}
		out = append(out, text...)
	}
	_, err = in.json.ReadToken()
	return out, err
}

// check refuses what no publisher sends.
func (h *publishedHead) check() error {
	switch {
	case len(h.Topics) == 0 || len(h.Topics) > MostTopics:
		return fmt.Errorf("it has %d topics", len(h.Topics))
	case !(h.Rate > 0 && h.Rate <= MostRate):
		return fmt.Errorf("%g messages per second, which no publisher sends", h.Rate)
	case h.Planned > MostPublished || float64(h.Planned)/h.Rate > mostLength.Seconds():
		return fmt.Errorf("%d messages at %g per second, which no plan has", h.Planned, h.Rate)
	case h.StartedUS < 0 || h.StartedUS > math.MaxInt64/4:
		return fmt.Errorf("it started at %d µs, which cannot be", h.StartedUS)
	case h.MaxBodyUS < 0 || h.MaxBodyUS > mostLength.Microseconds():
		return fmt.Errorf("max_body_us must be from 0 to %d, got %d", mostLength.Microseconds(), h.MaxBodyUS)
	case h.Lag == nil || h.Answer == nil:
		return errors.New("it lacks a histogram")
	case len(h.Failed) > mostKinds:
		return fmt.Errorf("it has %d kinds of failures", len(h.Failed))
	case len(h.Sent) != len(h.Topics):
		return fmt.Errorf("it has %d topics, and counts of %d", len(h.Topics), len(h.Sent))
	}
	for i, name := range h.Topics {
		if len(name) > mostText {
			return tooLong(name)
		}
		due := (int(h.Planned) - i + len(h.Topics) - 1) / len(h.Topics)
		if h.Sent[i] < 0 || h.Sent[i] > max(due, 0) {
			return fmt.Errorf("%d messages were sent to %.40q, where %d were due", h.Sent[i], name, due)
		}
	}
	for _, f := range h.Failed {
		switch {
		case f.State != Open && f.State != Refused || f.Status > mostStatus:
			return fmt.Errorf("it has a failure of state %s and status %d", f.State, f.Status)
		case f.Topic < 0 || f.Topic >= len(h.Topics) || f.Number < 1 || f.Number > clamp.Uint64(h.Sent[f.Topic]) || f.Count < 1 || f.Count > h.Planned:
			return fmt.Errorf("it has %d failures that began with number %d of topic %d, which was not sent", f.Count, f.Number, f.Topic)
		case len(f.Text) > mostText:
			return tooLong(f.Text)
		}
	}
	return nil
}

// cut gives each topic its part of the columns, and checks that every message can be read.
func (p *Published) cut(sent []int, lags, answers []byte) error {
	rest := column{lags: lags, answers: answers}
	for i, count := range sent {
		begin := rest
		for n := range count {
			if _, ok := rest.take(); !ok {
				return fmt.Errorf("what was published: message %d of %.40q cannot be read", n+1, p.Topics[i])
			}
		}
		p.sent[i] = column{
			count: count, lags: begin.lags[:len(begin.lags)-len(rest.lags)], answers: begin.answers[:len(begin.answers)-len(rest.answers)],
		}
	}
	if len(rest.lags)+len(rest.answers) > 0 {
		return errors.New("what was published has messages that no topic has")
	}
	return nil
}
