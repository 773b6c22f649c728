package service

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Parse checks and compiles a description. It returns the errors of all fields at once, as [Mistakes]. An error of
// any other type means that the description cannot be read as JSON.
//
// A description is the default export of a JavaScript module as JSON, with true instead of the functions token, url
// and body: JSON.stringify(description, (_, v) => (typeof v === 'function' ? true : v)).
func Parse(description []byte) (*Service, error) {
	root, err := read(description)
	if err != nil {
		return nil, err
	}
	p := parser{service: &Service{}}
	p.root(root)
	if len(p.mistakes) > 0 {
		return nil, p.mistakes.sentences()
	}
	if p.service.hash, err = digest(description); err != nil {
		return nil, err
	}
	p.service.source, p.service.branches = bytes.Clone(description), branches(p.service.paths)
	return p.service, nil
}

// digest returns a hash that ignores white space, the order of fields and the notation of numbers.
func digest(description []byte) (string, error) {
	var value any
	if err := json.Unmarshal(description, &value); err != nil {
		return "", err
	}
	canonical, err := json.Marshal(value) // sorts the names of a map
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), err
}

type parser struct {
	service  *Service
	mistakes mistakes
	// hasRequestMistakes reports whether connect or publish has mistakes. If so, checkPublisher is skipped.
	hasRequestMistakes bool
}

// nameOfService matches the name of a service, which file names contain.
var nameOfService = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (p *parser) root(n *node) {
	s := p.service
	f := p.fields(n, "", "name", "token", "url", "body", "connect", "heartbeat", "message", "end", "resume", "publish")
	if f == nil {
		return
	}
	name, ok := p.text(f.need(p, "name", "a short name of the service, such as 'mine'"), "name")
	if s.Name = name; ok && !nameOfService.MatchString(name) {
		p.mistakes.add(f.position("name"), "name must be at most 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit, got %q", name)
	}
	p.token(f.valueNode("token"))
	s.HasURL = p.isFunction(f.valueNode("url"), "url")
	if s.HasBody = p.isFunction(f.valueNode("body"), "body"); s.HasBody && !endsByEvent(f) {
		p.mistakes.add(f.position("body"), "body(n) requires end.by: 'event'; use connect.body")
	}
	beforeConnect := len(p.mistakes)
	p.connect(f)
	afterConnect := len(p.mistakes)
	p.heartbeat(f)
	p.message(f)
	p.end(f)
	p.resume(f)
	beforePublish := len(p.mistakes)
	p.publish(f)
	if paths := len(s.paths); paths > maxPaths {
		p.mistakes.add(n.at, "the description must have at most %d JSON paths, got %d", maxPaths, paths)
	}
	p.hasRequestMistakes = afterConnect > beforeConnect || len(p.mistakes) > beforePublish
	p.checkContradictions(f)
}

func (p *parser) token(n *node) {
	if n != nil && n.kind == kindText {
		variables := []string{"SUBSCRIBE_TOKEN", "BACKEND_TOKEN"}
		p.service.TokenVariable = variables[p.choice(n, "token", variables...)]
		return
	}
	p.service.HasToken = p.isFunction(n, "token")
}

func (p *parser) connect(root *fields) {
	n := root.need(p, "connect", "how a stream is opened, such as { url: '{base}/events' }")
	f := p.fields(n, "connect", "method", "url", "headers", "body", "client", "then", "maxEventSize")
	if f == nil {
		return
	}
	s := p.service
	known := []Field{Base, Topic, N, ID, Run, Token}
	if endsByEvent(root) {
		known = append(known, Prompt)
		if f.valueNode("client") != nil {
			known = append(known, Client)
			p.parseClient(f.valueNode("client"))
		}
	} else if client := f.valueNode("client"); client != nil {
		p.mistakes.add(client.at, "connect.client requires end.by: 'event'; use connect.then.client")
	}
	p.request(f, &s.Connect, requestRules{method: "GET", fields: known, noURL: s.HasURL, noBody: s.HasBody})
	s.Connect.OK = []int{200}
	s.MaxEventSize = p.bytes(f.valueNode("maxEventSize"), "connect.maxEventSize")
	second := f.valueNode("then")
	if second == nil {
		return
	}
	t := p.fields(second, "connect.then", "event", "client", "method", "url", "headers", "body", "ok")
	if t == nil {
		return
	}
	s.SecondRequest = &SecondRequest{}
	s.SecondRequest.Event, _ = p.text(t.need(p, "event", "the event that this request waits for, such as 'connected'"), "connect.then.event")
	s.client = p.extractor(t.valueNode("client"), "connect.then.client", &s.clientPaths)
	known = []Field{Base, Topic, N, ID, Run, Token}
	if t.valueNode("client") != nil {
		known = append(known, Client)
	}
	p.request(t, &s.SecondRequest.Request, requestRules{method: "POST", fields: known})
}

func (p *parser) parseClient(n *node) {
	text, _ := n.value.(string)
	name, isHeader := strings.CutPrefix(text, "header:")
	switch {
	case !isHeader:
		p.service.client = p.extractor(n, "connect.client", &p.service.clientPaths)
	case !headerName.MatchString(name):
		p.mistakes.add(n.at, "connect.client must be 'header:NAME' with the name of a header, got %q", text)
	default:
		p.service.clientHeader = name
	}
}

func (p *parser) heartbeat(root *fields) {
	n := root.valueNode("heartbeat")
	f := p.fields(n, "heartbeat", "event", "data", "comment", "every")
	if f == nil {
		return
	}
	p.service.heartbeat = p.matcher(f, "heartbeat", "event, data or comment, such as { event: 'ping' } or { comment: true }")
	p.service.HeartbeatEvery = p.seconds(f.valueNode("every"), "heartbeat.every")
}

// matcher parses the fields of a block. required lists the fields of which one must be set.
func (p *parser) matcher(f *fields, path, required string) (m matcher) {
	m.event = p.optionalText(f.valueNode("event"), path+".event")
	m.data = p.optionalText(f.valueNode("data"), path+".data")
	if c := f.valueNode("comment"); c != nil && c.kind == kindBool {
		m.onlyComments = c.value == true
		if !m.onlyComments {
			p.mistakes.add(c.at, "%s.comment must be true or text, got false; remove it", path)
		} else if m.event != nil || m.data != nil {
			p.mistakes.add(c.at, "%s.comment: true matches only blocks without event and data; remove event and data", path)
		}
	} else if c != nil && c.kind != kindText {
		p.mistakes.add(c.at, "%s.comment must be true (any comment) or the text of the comment, got %s", path, c.kind)
	} else {
		m.comment = p.optionalText(c, path+".comment")
	}
	if f.valueNode("event") == nil && f.valueNode("data") == nil && f.valueNode("comment") == nil && f.valueNode("header") == nil {
		p.mistakes.add(f.node.at, "%s needs %s", path, required)
	}
	return m
}

func (p *parser) message(root *fields) {
	nouns := []string{"message", "noop"}
	p.service.Message.Noun = nouns[0]
	n := root.need(p, "message", "how messages are checked, such as { seq: 'json:$.seq' } or { every: 15 }; 'unchecked' if they are not checked")
	if n != nil && n.kind == kindText {
		if p.service.Message.Unchecked = n.value == "unchecked"; !p.service.Message.Unchecked {
			p.mistakes.add(n.at, "message must be an object, such as { seq: 'json:$.seq' }, or 'unchecked', got %q", n.value)
		}
		return
	}
	f := p.fields(n, "message", "seq", "run", "sentAt", "sum", "event", "data", "content", "per", "order", "delivery", "every", "noun", "same")
	if f == nil {
		return
	}
	m := &p.service.Message
	paths := &p.service.paths
	finite := endsByEvent(root)
	if finite {
		p.service.Finite = &FiniteResponse{content: p.contents(f.valueNode("content"))}
	} else if c := f.valueNode("content"); c != nil {
		p.mistakes.add(c.at, "message.content requires end.by: 'event'; remove it")
	}
	m.seq = p.extractor(f.valueNode("seq"), "message.seq", paths)
	m.marker = p.extractor(f.valueNode("run"), "message.run", paths)
	m.sent = p.extractor(f.valueNode("sentAt"), "message.sentAt", paths)
	m.sum = p.extractor(f.valueNode("sum"), "message.sum", paths)
	m.Numbered, m.Marked, m.Timed = f.valueNode("seq") != nil, f.valueNode("run") != nil, f.valueNode("sentAt") != nil
	m.Summed = f.valueNode("sum") != nil
	m.event = p.names(f.valueNode("event"), "message.event")
	m.data = p.optionalText(f.valueNode("data"), "message.data")
	m.PerTopic = p.choice(f.valueNode("per"), "message.per", "stream", "topic", "request") == 1
	if per := f.valueNode("per"); per != nil && finite != (per.value == "request") {
		p.mistakes.add(per.at, "message.per must be 'request' if, and only if, end.by is 'event', got '%v'", per.value)
	}
	if f.valueNode("per") == nil {
		m.PerTopic = root.valueNode("publish") != nil
	}
	m.AnyOrder = p.choice(f.valueNode("order"), "message.order", "published", "any") == 1
	m.AtLeastOnce = p.choice(f.valueNode("delivery"), "message.delivery", "exactly-once", "at-least-once") == 1
	m.Interval = p.seconds(f.valueNode("every"), "message.every")
	m.Noun = nouns[p.choice(f.valueNode("noun"), "message.noun", nouns...)]
	p.parseShared(f)
	if !finite && !m.Shared && root.valueNode("publish") == nil && !f.hasAny("seq", "every", "same") {
		p.mistakes.add(f.node.at, "message must state how messages are checked; add seq (where the number is, such as 'json:$.seq'), every (seconds between two messages) or same (what all streams of a topic receive, such as 'data'), or write message: 'unchecked'")
	}
	for _, name := range []string{"per", "order", "delivery"} {
		if f.valueNode(name) != nil && !m.Numbered && !m.Shared && !finite {
			p.mistakes.add(f.position(name), "message.%s needs message.seq or message.same, which distinguish messages", name)
		}
	}
}

func endsByEvent(root *fields) bool {
	end := root.valueNode("end")
	return end != nil && slices.ContainsFunc(end.members, func(m member) bool { return m.name == "by" && m.node.value == "event" })
}

// end parses the field end. Each of its fields except by is valid for only one value of by.
func (p *parser) end(root *fields) {
	f := p.fields(root.valueNode("end"), "end", "by", "lifetime", "method", "url", "headers", "body", "ok", "done", "failed", "incomplete", "stated")
	if f == nil {
		return
	}
	e := &p.service.End
	by := f.need(p, "by", "'client', 'request', 'server' or 'event'")
	mistakeCount := len(p.mistakes)
	e.By = Ending(p.choice(by, "end.by", "client", "request", "server", "event"))
	if e.By == ByEvent {
		if p.service.Finite == nil { // message: 'unchecked'
			p.service.Finite = &FiniteResponse{}
		}
		p.parseFinite(f)
	} else {
		for _, name := range []string{"done", "failed", "incomplete", "stated"} {
			if f.valueNode(name) != nil && by != nil && len(p.mistakes) == mistakeCount {
				p.mistakes.add(f.position(name), "end.%s requires end.by: 'event'; remove it", name)
			}
		}
	}
	valid := by != nil && len(p.mistakes) == mistakeCount // without a valid end.by, the fields that depend on it are not checked
	if e.By == ByRequest {
		e.Request = &Request{}
		p.request(f, e.Request, requestRules{method: "DELETE", fields: []Field{Base, Topic, N, ID, Run, Token}})
	}
	for _, name := range []string{"method", "url", "headers", "body", "ok"} {
		if f.valueNode(name) != nil && e.By != ByRequest && valid {
			p.mistakes.add(f.position(name), "end.%s requires end.by: 'request'; remove it", name)
		}
	}
	switch lifetime := f.valueNode("lifetime"); {
	case lifetime == nil && e.By == ByServer:
		p.mistakes.add(f.position("by"), "end.by: 'server' needs end.lifetime; set it to a number of seconds or a range, such as 600 or [480, 600]")
	case lifetime == nil:
	case e.By != ByServer:
		if valid {
			p.mistakes.add(f.position("lifetime"), "end.lifetime requires end.by: 'server'; remove it")
		}
	case lifetime.kind == kindList && len(lifetime.items) == 2:
		e.Shortest = p.seconds(lifetime.items[0], "end.lifetime[0]")
		e.Longest = p.seconds(lifetime.items[1], "end.lifetime[1]")
		if e.Shortest > e.Longest {
			p.mistakes.add(lifetime.at, "end.lifetime must be the shortest and the longest lifetime, in this order")
		}
	case lifetime.kind == kindNumber:
		e.Longest = p.seconds(lifetime, "end.lifetime")
		e.Shortest = e.Longest
	default:
		p.mistakes.add(lifetime.at, "end.lifetime must be a number of seconds, or the shortest and the longest as [480, 600]")
	}
}

var gapHeader = regexp.MustCompile(`^([!#$%&'*+.^_|~0-9A-Za-z-]+):[ \t]*(\S.*?)[ \t]*$`)

func (p *parser) resume(root *fields) {
	r := &p.service.Resume
	n := root.valueNode("resume")
	f := p.fields(n, "resume", "by", "id", "gap")
	if f == nil {
		r.Header = n == nil // Last-Event-ID is the default, as in the standard
		return
	}
	by := f.need(p, "by", "'header', 'none' or { query: 'NAME' }")
	switch {
	case by == nil:
	case by.kind == kindObject:
		if q := p.fields(by, "resume.by", "query"); q != nil {
			r.Query, _ = p.text(q.need(p, "query", "the name of the parameter, such as 'since'"), "resume.by.query")
			if q.valueNode("query") != nil && q.valueNode("query").value == "" {
				p.mistakes.add(q.position("query"), "resume.by.query must be the name of the parameter, such as 'since', got \"\"")
			}
		}
	case by.value == "query":
		p.mistakes.add(by.at, "resume.by must have the name of the parameter, such as { query: 'since' }, got 'query'")
	default:
		r.Header = p.choice(by, "resume.by", "header", "none") == 0 && by.value == "header"
	}
	noResume := by != nil && by.value == "none"
	if id := f.valueNode("id"); id != nil {
		p.service.resumeID = p.extractor(id, "resume.id", &p.service.paths)
		r.SendsReadingID = true
		if noResume {
			p.mistakes.add(id.at, "resume.id has no effect, because resume.by is 'none'; remove it")
		}
	}
	p.gap(f, noResume)
}

func (p *parser) gap(resume *fields, noResume bool) {
	n := resume.valueNode("gap")
	f := p.fields(n, "resume.gap", "event", "data", "comment", "header")
	if f == nil {
		return
	}
	p.service.gap = p.matcher(f, "resume.gap", "event, data, comment or header, such as { event: 'reset' } or { header: 'Last-Event-ID: {other}' }")
	if h, ok := p.text(f.valueNode("header"), "resume.gap.header"); ok {
		if part := gapHeader.FindStringSubmatch(h); part != nil {
			p.service.Resume.GapHeader, p.service.Resume.GapValue = part[1], part[2]
		} else {
			p.mistakes.add(f.position("header"), "resume.gap.header must be a name and a value, such as 'Last-Event-ID: earliest', got %q", h)
		}
	}
	if noResume {
		p.mistakes.add(n.at, "resume.gap has no effect, because resume.by is 'none'; remove it")
	}
}

func (p *parser) publish(root *fields) {
	f := p.fields(root.valueNode("publish"), "publish", "method", "url", "headers", "body", "ok")
	if f == nil {
		return
	}
	p.service.Publish = &Request{}
	p.request(f, p.service.Publish, requestRules{method: "POST", fields: []Field{Base, Topic, Run, Seq, SentAt, Sum, Padding, Token}, byPublisher: true})
}

// number returns the number of n, and reports whether n is a number. If n is neither a number nor nil, it is a mistake.
func (p *parser) number(n *node, path, unit string) (json.Number, bool) {
	if n == nil {
		return "", false
	}
	number, ok := n.value.(json.Number)
	if !ok {
		p.mistakes.add(n.at, "%s must be a number of %s, got %s", path, unit, n.kind)
	}
	return number, ok
}

// bytes parses a number of bytes. It returns 0 if the field is missing or is not a number.
func (p *parser) bytes(n *node, path string) int {
	number, ok := p.number(n, path, "bytes")
	if !ok {
		return 0
	}
	size, err := number.Int64()
	if err != nil || size < 1 || size > math.MaxInt32 {
		p.mistakes.add(n.at, "%s must be a whole number of bytes from 1 to %d, got %s", path, math.MaxInt32, number)
	}
	return int(size)
}

// seconds parses a number of seconds. It returns 0 for a missing or invalid field.
func (p *parser) seconds(n *node, path string) time.Duration {
	number, ok := p.number(n, path, "seconds")
	if !ok {
		return 0
	}
	if seconds, err := number.Float64(); err == nil && seconds >= 0.001 && seconds <= 1e8 {
		return time.Duration(seconds * float64(time.Second))
	}
	p.mistakes.add(n.at, "%s must be a number of seconds from 0.001 to 1e8, got %s", path, number)
	return 0
}
