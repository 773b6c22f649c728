package service

// contradictions reports fields that are valid by themselves and contradict each other.
func (p *parser) contradictions(root *fields) {
	p.interval(root)
	p.notFinite(root)
	s := p.service
	if n := root.valueNode("publish"); n != nil && n.kind == kindObject && root.valueNode("message") != nil {
		p.publisher(root, n)
	} else if s.Message.Summed && n == nil {
		p.found.add(root.position("message"), "message.sum is the checksum that publish sends as {sum}, and there is no publish")
	}
	if s.heartbeat.empty() {
		return
	}
	at := root.position("heartbeat")
	if s.heartbeat.equals(&s.gap) {
		p.found.add(at, "heartbeat and resume.gap are equal; a block cannot match both")
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

// interval rejects message.every if messages are counted by number, as those of a topic are.
func (p *parser) interval(root *fields) {
	if m := &p.service.Message; m.Interval > 0 && m.Numbered && m.PerTopic {
		p.found.add(root.position("message"), "message.every cannot be combined with numbers of a topic, where each gap is a loss; remove message.every")
	}
}

// publisher compares publish with message.
func (p *parser) publisher(root *fields, n *node) {
	s := p.service
	switch {
	case p.unclear:
		return
	case !s.Message.Numbered:
		p.found.add(n.at, "publish numbers its messages: message.seq must name its place, such as 'json:$.seq'")
	case !s.Publish.Uses(Seq):
		p.found.add(n.at, "publish sends no {seq}: the number that message.seq finds must be in its url, headers or body")
	case !s.Message.PerTopic:
		p.found.add(root.position("message"), "message.per is 'stream', and publish numbers by topic; remove message.per")
	}
	if s.Message.Marked && !s.Publish.Uses(Run) {
		p.found.add(n.at, "publish sends no {run}: the marker that message.run finds must be in its url, headers or body")
	}
	if s.Publish.Uses(Padding) && !s.Publish.Body.Uses(Padding) {
		p.found.add(n.at, "publish sends {padding} in its url or headers: it is many KB, which only fit into publish.body")
	}
	p.sum(root, n)
	asks := s.HasURL || s.Connect.Uses(Topic) || s.SecondRequest != nil && s.SecondRequest.Uses(Topic)
	switch sends := s.Publish.Uses(Topic); {
	case sends && !asks:
		p.found.add(root.position("connect"), "connect has no {topic}, but publish sends one: a stream must name its topic")
	case !sends && asks && !s.HasURL:
		p.found.add(n.at, "publish sends no {topic}, but connect has one: a message must name its topic")
	}
}

// sum checks that publish and message have all parts of a checksum.
func (p *parser) sum(root *fields, n *node) {
	s := p.service
	sends := s.Publish.Uses(Sum)
	switch {
	case !sends && !s.Message.Summed:
		return
	case !sends:
		p.found.add(n.at, "publish sends no {sum}: the checksum that message.sum finds must be in its url, headers or body")
	case !s.Message.Summed:
		p.found.add(root.position("message"), "publish sends a {sum}: message.sum must name its place, such as 'json:$.sum'")
	}
	if !s.Message.Marked {
		p.found.add(root.position("message"), "{sum} is the checksum of marker, number and time: message.run must name the place of the marker, such as 'json:$.run'")
	}
	if !s.Message.Timed {
		p.found.add(root.position("message"), "{sum} is the checksum of marker, number and time: message.sentAt must name the place of the time, such as 'json:$.t'")
	} else if !s.Publish.Uses(SentAt) {
		p.found.add(n.at, "publish sends no {sentAt}: the time in {sum} must be in its url, headers or body")
	}
}

// notFinite rejects fields of endless streams in a description of finite responses.
func (p *parser) notFinite(root *fields) {
	s := p.service
	if s.End.By != ByEvent {
		return
	}
	for _, name := range []string{"publish", "resume"} {
		if root.valueNode(name) != nil {
			p.found.add(root.position(name), "%s is for endless streams, and end.by is 'event'; remove it", name)
		}
	}
	m := &s.Message
	if m.Marked || m.Timed || m.Summed || m.Interval > 0 || m.data != nil {
		p.found.add(root.position("message"), "message.run, sentAt, sum, data and every are for endless streams, and end.by is 'event'; remove them")
	}
	if m.AnyOrder || m.AtLeastOnce {
		p.found.add(root.position("message"), "message.order and delivery are for endless streams, and end.by is 'event'; remove them: each chunk must arrive once and in order")
	}
	if s.SecondRequest != nil {
		p.found.add(root.position("connect"), "connect.then is for endless streams, and end.by is 'event'; remove it")
	}
}
