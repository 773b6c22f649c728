package service

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"
)

// A FiniteResponse describes responses that end with a terminal event (end.by: 'event').
type FiniteResponse struct {
	done, failed, incomplete []condition
	content                  []extractor // places of content, or nil if the data of each message is content
	total                    chunkTotal
}

// A chunkTotal describes the totals that the service states for a response (end.stated).
type chunkTotal struct {
	event, subject *string   // names of the event with the totals and of the events that they count; nil means any event
	text, chunks   extractor // the text of the chunks since the last total, and their number
	tokens         extractor // the number of tokens, which is at least the number of chunks
}

// A condition matches a block, a value in its JSON, or both.
type condition struct {
	block  matcher
	inJSON bool    // path must have a value
	path   int     // index in Service.paths
	value  *string // required value as text; nil means any value except null and false
}

// A Chunk is the content of one block of a response.
type Chunk struct {
	// Done reports whether the block is a terminal event, which may have content too. Failed reports whether the block
	// reports an error. Incomplete reports whether the response stops early.
	Done, Failed, Incomplete bool
	// Heartbeat reports whether the block is a heartbeat, or has no data.
	Heartbeat bool
	// Content reports whether the block has a part of the response's content. Text is that part if message.content finds
	// it as a string or a number, otherwise nil. Text may point into the block. Content is also true with ErrJSON and
	// ErrUTF8.
	Content bool
	Text    []byte
	// Seq is the number of the block in its response, if HasSeq.
	Seq    int64
	HasSeq bool
	// IsStated reports whether the stated totals include this chunk. StatedText is the text of all such chunks since
	// the last total, and StatedChunks is their number. StatedTokens is the number of tokens of the response. Each is
	// valid only with its Has field.
	IsStated        bool
	StatedText      []byte
	StatedChunks    int64
	HasStatedText   bool
	HasStatedChunks bool
	StatedTokens    int64
	HasStatedTokens bool
	// Err is nil, or ErrJSON, ErrNumber or ErrUTF8 if the block does not match the description. ErrNoData means that
	// the block has the name of a terminal event but no data, so it is not an event.
	Err error
}

// ReadChunk returns the content of a block of a response. s.Finite must not be nil.
func (s *Service) ReadChunk(b *Block) (c Chunk) {
	f := s.Finite
	if s.heartbeat.matches(b) || !b.HasData {
		if c.Heartbeat = true; len(b.Event) > 0 && anyMatches(f.done, b, nil, false) {
			c.Err = ErrNoData
		}
		return c
	}
	d, valid := s.parse(b.Data)
	defer documents.Put(d)
	c.Failed = anyMatches(f.failed, b, d, valid)
	c.Done = !c.Failed && anyMatches(f.done, b, d, valid)
	c.Incomplete = anyMatches(f.incomplete, b, d, valid)
	f.total.read(b, d, &c)
	if !s.Message.HasName(b.Event) {
		return c
	}
	switch {
	case c.Failed:
	case !valid && s.needsJSON() && (!c.Done || bytes.HasPrefix(b.Data, []byte("{"))): // [DONE] is not JSON
		c.Err = ErrJSON
	case !utf8.Valid(b.Data):
		c.Err = ErrUTF8
	}
	if c.Err != nil {
		c.Content = true
		return c
	}
	if v, ok := s.Message.seq.find(b, d); ok {
		if c.Seq, c.HasSeq = parseSeq(v.text); !v.scalar || !c.HasSeq {
			c.Seq, c.HasSeq, c.Err = 0, false, ErrNumber
		}
	}
	if !c.Failed {
		c.Content, c.Text = f.contentOf(b, d)
		c.Content = c.Content || f.content == nil && !c.Done
		c.IsStated = c.Content && (f.total.subject == nil || isEvent(b.Event, *f.total.subject))
	}
	return c
}

// needsJSON reports whether the number or the content of each message is a JSON value.
func (s *Service) needsJSON() bool {
	isJSON := func(e extractor) bool { return e.source == fromJSON }
	content := s.Finite.content
	return isJSON(s.Message.seq) || len(content) > 0 && !slices.ContainsFunc(content, func(e extractor) bool { return !isJSON(e) })
}

func (t *chunkTotal) read(b *Block, d *document, c *Chunk) {
	if t.event != nil && !isEvent(b.Event, *t.event) {
		return
	}
	if v, ok := t.text.find(b, d); ok && v.scalar {
		c.StatedText, c.HasStatedText = v.text, true
	}
	if v, ok := t.chunks.find(b, d); ok && v.scalar {
		c.StatedChunks, c.HasStatedChunks = parseSeq(v.text)
	}
	if v, ok := t.tokens.find(b, d); ok && v.scalar {
		c.StatedTokens, c.HasStatedTokens = parseSeq(v.text)
	}
}

// contentOf reports whether a block has content at a place that message.content names. The value false, an empty
// string, an empty object and an empty list are not content. text is the first content that is a string or a number;
// nil if all content consists of other values.
func (f *FiniteResponse) contentOf(b *Block, d *document) (found bool, text []byte) {
	for i := range f.content {
		v, ok := f.content[i].find(b, d)
		if !ok || len(v.text) == 0 || !v.scalar && isEmptyJSON(v.text) {
			continue
		}
		if v.scalar {
			return true, v.text
		}
		found = true
	}
	return found, nil
}

// isEmptyJSON reports whether a JSON value is false, an empty object or an empty list. The value must not be a string
// or a number.
func isEmptyJSON(text []byte) bool {
	return string(text) == "false" || len(bytes.TrimSpace(text[1:len(text)-1])) == 0
}

func anyMatches(all []condition, b *Block, d *document, valid bool) bool {
	for i := range all {
		if all[i].matches(b, d, valid) {
			return true
		}
	}
	return false
}

// matches reports whether a block meets the condition. valid reports whether the data of the block is JSON.
func (c *condition) matches(b *Block, d *document, valid bool) bool {
	if !c.block.isEmpty() && !c.block.matches(b) {
		return false
	}
	if !c.inJSON {
		return true
	}
	if !valid {
		return false
	}
	v, ok := d.value(c.path)
	if c.value == nil {
		return ok && string(v.text) != "false"
	}
	return ok && string(v.text) == *c.value
}

func (p *parser) parseFinite(end *fields) {
	s := p.service
	f := s.Finite
	if end.need(p, "done", "the terminal event of a response, such as { data: '[DONE]' } or { event: 'complete' }") != nil {
		f.done = p.conditions(end.valueNode("done"), "end.done")
	}
	f.failed = p.conditions(end.valueNode("failed"), "end.failed")
	f.incomplete = p.conditions(end.valueNode("incomplete"), "end.incomplete")
	if total := p.fields(end.valueNode("stated"), "end.stated", "event", "of", "text", "chunks", "tokens"); total != nil {
		f.total.event, f.total.subject = p.optionalText(total.valueNode("event"), "end.stated.event"), p.optionalText(total.valueNode("of"), "end.stated.of")
		f.total.text = p.extractor(total.valueNode("text"), "end.stated.text", &s.paths)
		f.total.chunks = p.extractor(total.valueNode("chunks"), "end.stated.chunks", &s.paths)
		f.total.tokens = p.extractor(total.valueNode("tokens"), "end.stated.tokens", &s.paths)
		if total.valueNode("text") == nil && total.valueNode("chunks") == nil && total.valueNode("tokens") == nil {
			p.mistakes.add(total.node.at, "end.stated needs text, chunks or tokens, such as { text: 'json:$.text' }")
		}
		if total.valueNode("text") != nil && total.valueNode("chunks") != nil {
			p.mistakes.add(total.node.at, "end.stated.text cannot be combined with end.stated.chunks; remove one of them")
		}
	}
}

func (p *parser) conditions(n *node, path string) (out []condition) {
	for _, item := range p.items(n, path) {
		out = append(out, p.condition(item, path))
	}
	return out
}

// items returns the items of a list, or n itself if it is not a list. An empty list is a mistake.
func (p *parser) items(n *node, path string) []*node {
	items := n.list()
	if n != nil && len(items) == 0 {
		p.mistakes.add(n.at, "%s must have at least one item, got an empty list", path)
	}
	return items
}

func (p *parser) condition(n *node, path string) (c condition) {
	f := p.fields(n, path, "event", "data", "comment", "json", "is")
	if f == nil {
		return c
	}
	place, value := f.valueNode("json"), f.valueNode("is")
	if comment := f.valueNode("comment"); comment != nil {
		p.mistakes.add(comment.at, "%s.comment is not supported, because a comment alone is not an event; set event, data or json", path)
		return c
	}
	if f.valueNode("event") != nil || f.valueNode("data") != nil || place == nil {
		c.block = p.matcher(f, path, "event, data or json, such as { event: 'done' }")
	}
	if text, ok := p.text(place, path+".json"); ok {
		steps, err := parsePath(text)
		if err != nil {
			p.mistakes.add(place.at, "%s.json %s, got %q", path, err, text)
			return c
		}
		c.inJSON, c.path = true, addPath(&p.service.paths, steps)
	}
	switch {
	case value == nil:
	case place == nil:
		p.mistakes.add(value.at, "%s.is requires %[1]s.json; add it, such as json: '$.type'", path)
	case value.kind == kindList || value.kind == kindObject:
		p.mistakes.add(value.at, "%s.is must be text, a number, true or false, got %s", path, value.kind)
	default:
		text := fmt.Sprint(value.value) // a string has no quotes; numbers and booleans are as in JSON
		c.value = &text
	}
	return c
}

func (p *parser) contents(n *node) (out []extractor) {
	for _, item := range p.items(n, "message.content") {
		out = append(out, p.extractor(item, "message.content", &p.service.paths))
	}
	return out
}

// StatesTextOrChunks reports whether the totals that the service states include the text or the number of chunks.
func (f *FiniteResponse) StatesTextOrChunks() bool {
	return f.total.text.source != fromNowhere || f.total.chunks.source != fromNowhere
}

// ClientHeader returns the name of the response header whose value is {client} in the next request of the same client.
// It returns "" if connect.client does not name a header.
func (s *Service) ClientHeader() string { return s.clientHeader }

// DefaultPrompt returns the prompt of a request if the user sets none. The numbered model, a test server, reads the id
// in the first line.
func DefaultPrompt(id string) string { return "soak id=" + id + "\nWrite a short story." }
