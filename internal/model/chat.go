package model

import "strconv"

// A chat writes responses of OpenAI's API /v1/chat/completions.
type chat struct{}

func (chat) name() string { return "openai-chat" }

// appendHead appends the fields that all objects have. kind is the value of "object".
func (chat) appendHead(b []byte, a *answer, kind string) []byte {
	b = append(append(b, `{"id":"chatcmpl-`...), a.ID...)
	b = append(append(b, `","object":"`...), kind...)
	b = strconv.AppendInt(append(b, `","created":`...), a.created, 10)
	return append(append(b, `,"model":`...), a.model...)
}

// choice appends the start of an event with a choice, up to the delta.
func (c chat) choice(b []byte, a *answer) []byte {
	b = c.appendHead(append(b, "data: "...), a, "chat.completion.chunk")
	return append(b, `,"choices":[{"index":0,"delta":`...)
}

// closeChoice appends the end of an event with a choice. reason is JSON: a string, or null before the end.
func (chat) closeChoice(b []byte, a *answer, reason string) []byte {
	b = append(append(b, `,"logprobs":null,"finish_reason":`...), reason...)
	b = append(b, "}]"...)
	if a.usage {
		b = append(b, `,"usage":null`...)
	}
	return append(b, "}\n\n"...)
}

func (c chat) head(b []byte, a *answer) []byte {
	b = append(c.choice(b, a), `{"role":"assistant","content":"","refusal":null}`...)
	return c.closeChoice(b, a, "null")
}

func (c chat) chunk(b []byte, a *answer, k int) []byte {
	b = append(c.choice(b, a), `{"content":"`...)
	b = append(a.token(b, k, a.Fault), `"}`...)
	return c.closeChoice(b, a, "null")
}

func (c chat) tail(b []byte, a *answer) []byte {
	b = c.closeChoice(append(c.choice(b, a), "{}"...), a, c.reason(a))
	if a.usage {
		b = c.appendHead(append(b, "data: "...), a, "chat.completion.chunk")
		b = append(c.counts(append(b, `,"choices":[],"usage":`...), a), "}\n\n"...)
	}
	return b
}

func (chat) terminal(b []byte, _ *answer) []byte { return append(b, "data: [DONE]\n\n"...) }

func (c chat) failure(b []byte, _ *answer) []byte {
	return append(c.refusal(append(b, "data: "...), 500, failureMessage), "\n\n"...)
}

func (c chat) appendComplete(b []byte, a *answer) []byte {
	b = append(c.appendHead(b, a, "chat.completion"), `,"choices":[{"index":0,"message":{"role":"assistant","content":"`...)
	b = append(a.text(b), `","refusal":null},"logprobs":null,"finish_reason":`...)
	b = append(append(b, c.reason(a)...), `}],"usage":`...)
	return append(c.counts(b, a), '}')
}

func (chat) refusal(b []byte, status int, message string) []byte {
	b = appendString(append(b, `{"error":{"message":`...), message)
	b = append(append(b, `,"type":"`...), errorType(status)...)
	return append(b, `","param":null,"code":null}}`...)
}

func (chat) reason(a *answer) string {
	if a.Fault.Kind == LengthLimit {
		return `"length"`
	}
	return `"stop"`
}

// counts appends the usage. A chunk is one token.
func (chat) counts(b []byte, a *answer) []byte {
	b = appendInt(append(b, `{"prompt_tokens":`...), promptTokens)
	b = appendInt(append(b, `,"completion_tokens":`...), a.Chunks)
	b = appendInt(append(b, `,"total_tokens":`...), promptTokens+a.Chunks)
	return append(b, '}')
}
