package model

// An anthropic writes responses of Anthropic's API /v1/messages.
type anthropic struct{}

func (anthropic) name() string { return "anthropic-messages" }

func (anthropic) message(b []byte, a *answer) []byte {
	b = append(append(b, `{"id":"msg_`...), a.ID...)
	return append(append(b, `","type":"message","role":"assistant","model":`...), a.model...)
}

func (m anthropic) head(b []byte, a *answer) []byte {
	b = m.message(append(b, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...), a)
	b = append(b, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":`...)
	b = append(appendInt(b, promptTokens), ",\"output_tokens\":1}}}\n\n"...)
	return append(b, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"+
		"\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n"...)
}

func (anthropic) chunk(b []byte, a *answer, k int) []byte {
	b = append(b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"+
		"\"delta\":{\"type\":\"text_delta\",\"text\":\""...)
	return append(a.token(b, k, a.Fault), "\"}}\n\n"...)
}

func (m anthropic) tail(b []byte, a *answer) []byte {
	b = append(b, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"+
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"...)
	b = append(append(b, m.reason(a)...), `,"stop_sequence":null},"usage":{"output_tokens":`...)
	return append(appendInt(b, a.Chunks), "}}\n\n"...)
}

func (anthropic) terminal(b []byte, _ *answer) []byte {
	return append(b, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

func (m anthropic) failure(b []byte, _ *answer) []byte {
	return append(m.refusal(append(b, "event: error\ndata: "...), 500, failureMessage), "\n\n"...)
}

func (m anthropic) appendComplete(b []byte, a *answer) []byte {
	b = append(m.message(b, a), `,"content":[{"type":"text","text":"`...)
	b = append(a.text(b), `"}],"stop_reason":`...)
	b = append(append(b, m.reason(a)...), `,"stop_sequence":null,"usage":{"input_tokens":`...)
	b = append(appendInt(b, promptTokens), `,"output_tokens":`...)
	return append(appendInt(b, a.Chunks), "}}"...)
}

func (anthropic) refusal(b []byte, status int, message string) []byte {
	b = append(append(b, `{"type":"error","error":{"type":"`...), errorType(status)...)
	return append(appendString(append(b, `","message":`...), message), "}}"...)
}

func (anthropic) reason(a *answer) string {
	if a.Fault.Kind == LengthLimit {
		return `"max_tokens"`
	}
	return `"end_turn"`
}
