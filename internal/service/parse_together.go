package service

// together tells what is right in each part of a description, and wrong as a whole.
func (p *parser) together(root *fields) {
	s := p.service
	if n := root.get("publish"); n != nil && n.kind == isObject && root.get("message") != nil {
		p.publisher(root, n)
	}
	if s.heartbeat.empty() {
		return
	}
	at := root.at("heartbeat")
	if s.heartbeat.equals(&s.gap) {
		p.found.add(at, "heartbeat and resume.gap say the same: a block is one or the other")
	}
	if s.heartbeat.event != nil && s.heartbeat.data == nil && s.heartbeat.comment == nil {
		for _, name := range s.Message.event {
			if name == *s.heartbeat.event {
				p.found.add(at, "heartbeat.event and message.event are both %q: a heartbeat is never a message", name)
			}
		}
	}
	if s.heartbeat.data != nil && s.Message.data != nil && *s.heartbeat.data == *s.Message.data && s.heartbeat.event == nil {
		p.found.add(at, "heartbeat.data and message.data are both %q: a heartbeat is never a message", *s.Message.data)
	}
}

// publisher compares what is published with what messages are said to be.
func (p *parser) publisher(root *fields, n *node) {
	s := p.service
	switch {
	case p.unclear:
		return
	case !s.Message.Numbered:
		p.found.add(n.at, "publish numbers its messages: message.seq must say where the number is, such as 'json:$.seq'")
	case !s.Publish.uses(Seq):
		p.found.add(n.at, "publish sends no {seq}: the number that message.seq finds must be in its url, headers or body")
	case !s.Message.PerTopic:
		p.found.add(root.at("message"), "message.per is 'stream', and publish numbers by topic: leave message.per out")
	}
	if s.Message.Marked && !s.Publish.uses(Run) {
		p.found.add(n.at, "publish sends no {run}: the marker that message.run finds must be in its url, headers or body")
	}
	asks := s.HasURL || s.Connect.uses(Topic) || s.Then != nil && s.Then.uses(Topic)
	switch sends := s.Publish.uses(Topic); {
	case sends && !asks:
		p.found.add(root.at("connect"), "connect names no {topic}, and publish sends to topics: a stream must say which one it wants")
	case !sends && asks && !s.HasURL:
		p.found.add(n.at, "publish sends no {topic}, and connect asks for one: a message must say which topic it is for")
	}
}
