package service

import "reflect"

func (p *parser) checkContradictions(root *fields) {
	s := p.service
	if m := &s.Message; m.Interval > 0 && m.Numbered && m.PerTopic {
		p.mistakes.add(root.position("message"), "message.every cannot be combined with numbers per topic, where each gap is a loss; remove message.every")
	}
	p.rejectEndlessFields(root)
	if n := root.valueNode("publish"); n != nil && n.kind == kindObject && root.valueNode("message") != nil {
		p.checkPublisher(root, n)
	} else if s.Message.Summed && n == nil {
		p.mistakes.add(root.position("message"), "message.sum requires publish, which sends the checksum as {sum}; remove message.sum, or add publish")
	}
	if s.heartbeat.isEmpty() {
		return
	}
	at := root.position("heartbeat")
	if reflect.DeepEqual(s.heartbeat, s.gap) {
		p.mistakes.add(at, "heartbeat and resume.gap are equal, but a block cannot be both; change one of them")
	}
	if s.heartbeat.event != nil && s.heartbeat.data == nil && s.heartbeat.comment == nil {
		for _, name := range s.Message.event {
			if name == *s.heartbeat.event {
				p.mistakes.add(at, "heartbeat.event and message.event are both %q, but a heartbeat is never a message; change one of them", name)
			}
		}
	}
	if s.heartbeat.data != nil && s.Message.data != nil && *s.heartbeat.data == *s.Message.data && s.heartbeat.event == nil && s.heartbeat.comment == nil {
		p.mistakes.add(at, "heartbeat.data and message.data are both %q, but a heartbeat is never a message; change one of them", *s.Message.data)
	}
}

func (p *parser) checkPublisher(root *fields, n *node) {
	s := p.service
	switch {
	case p.hasRequestMistakes:
		return
	case !s.Message.Numbered:
		p.mistakes.add(n.at, "publish requires message.seq; set it to the place of the number, such as 'json:$.seq'")
	case !s.Publish.Uses(Seq):
		p.mistakes.add(n.at, "publish must send {seq} in its url, headers or body, because message.seq reads it")
	case !s.Message.PerTopic:
		p.mistakes.add(root.position("message"), "message.per must be 'topic' with publish, which numbers the messages of each topic; remove message.per")
	}
	if s.Message.Marked && !s.Publish.Uses(Run) {
		p.mistakes.add(n.at, "publish must send {run} in its url, headers or body, because message.run reads it")
	}
	if s.Publish.Uses(Padding) && !s.Publish.Body.Uses(Padding) {
		p.mistakes.add(n.at, "publish must not send {padding} in its url or headers, which are too small for it; put it into publish.body")
	}
	p.checkSum(root, n)
	subscribes := s.HasURL || s.Connect.Uses(Topic) || s.SecondRequest != nil && s.SecondRequest.Uses(Topic)
	switch publishes := s.Publish.Uses(Topic); {
	case publishes && !subscribes:
		p.mistakes.add(root.position("connect"), "publish has {topic}, but connect does not; add {topic} to connect")
	case !publishes && subscribes && !s.HasURL:
		p.mistakes.add(n.at, "connect has {topic}, but publish does not; add {topic} to publish")
	}
}

func (p *parser) checkSum(root *fields, n *node) {
	s := p.service
	sends := s.Publish.Uses(Sum)
	switch {
	case !sends && !s.Message.Summed:
		return
	case !sends:
		p.mistakes.add(n.at, "publish must send {sum} in its url, headers or body, because message.sum reads it")
	case !s.Message.Summed:
		p.mistakes.add(root.position("message"), "publish sends {sum}, which requires message.sum; set it to the place of the checksum, such as 'json:$.sum'")
	}
	if !s.Message.Marked {
		p.mistakes.add(root.position("message"), "{sum} includes the marker, which requires message.run; set it to the place of the marker, such as 'json:$.run'")
	}
	if !s.Message.Timed {
		p.mistakes.add(root.position("message"), "{sum} includes the time, which requires message.sentAt; set it to the place of the time, such as 'json:$.t'")
	} else if !s.Publish.Uses(SentAt) {
		p.mistakes.add(n.at, "publish must send {sentAt} in its url, headers or body, because {sum} includes the time")
	}
}

func (p *parser) rejectEndlessFields(root *fields) {
	s := p.service
	if s.End.By != ByEvent {
		return
	}
	for _, name := range []string{"publish", "resume"} {
		if root.valueNode(name) != nil {
			p.mistakes.add(root.position(name), "%s cannot be combined with end.by: 'event'; remove it", name)
		}
	}
	m := &s.Message
	if m.Marked || m.Timed || m.Summed || m.Interval > 0 || m.data != nil {
		p.mistakes.add(root.position("message"), "message.run, sentAt, sum, data and every cannot be combined with end.by: 'event'; remove them")
	}
	if m.AnyOrder || m.AtLeastOnce {
		p.mistakes.add(root.position("message"), "message.order and delivery cannot be combined with end.by: 'event', because each chunk must arrive once and in order; remove them")
	}
	if s.SecondRequest != nil {
		p.mistakes.add(root.position("connect"), "connect.then cannot be combined with end.by: 'event'; remove it")
	}
}
