package model

import "strconv"

// responses writes responses of OpenAI's API /v1/responses.
type responses struct{ chat }

func (responses) name() string { return "openai-responses" }

// event appends the start of an event of a type, up to the sequence number, and increments that number.
func (responses) event(b []byte, a *answer, kind string) []byte {
	b = append(append(b, "event: "...), kind...)
	b = append(append(b, "\ndata: {\"type\":\""...), kind...)
	b = appendInt(append(b, `","sequence_number":`...), a.sequence)
	a.sequence++
	return b
}

// response appends the object of the response. Its output is empty before the end.
func (r responses) response(b []byte, a *answer, status string) []byte {
	b = append(append(b, `{"id":"resp_`...), a.ID...)
	b = strconv.AppendInt(append(b, `","object":"response","created_at":`...), a.created, 10)
	b = append(append(b, `,"status":"`...), status...)
	b = append(b, `","background":false,"error":null,"incomplete_details":`...)
	if status == "incomplete" {
		b = append(b, `{"reason":"max_output_tokens"}`...)
	} else {
		b = append(b, "null"...)
	}
	b = append(append(b, `,"instructions":null,"max_output_tokens":null,"metadata":{},"model":`...), a.model...)
	b = append(b, `,"output":[`...)
	ended := status != "in_progress"
	if ended {
		b = r.item(b, a, status)
	}
	b = append(b, `],"parallel_tool_calls":true,"previous_response_id":null,"store":false,"temperature":1,`+
		`"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1,"truncation":"disabled","usage":`...)
	if !ended {
		return append(b, "null}"...)
	}
	b = appendInt(append(b, `{"input_tokens":`...), promptTokens)
	b = append(b, `,"input_tokens_details":{"cached_tokens":0},"output_tokens":`...)
	b = append(appendInt(b, a.Chunks), `,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":`...)
	return append(appendInt(b, promptTokens+a.Chunks), "}}"...)
}

// item appends the message of the response. Its content is empty before the end.
func (r responses) item(b []byte, a *answer, status string) []byte {
	b = append(append(b, `{"id":"msg_`...), a.ID...)
	b = append(append(b, `","type":"message","status":"`...), status...)
	b = append(b, `","role":"assistant","content":[`...)
	if status != "in_progress" {
		b = r.part(b, a, true)
	}
	return append(b, "]}"...)
}

// part appends the only part of the message, with the text if the answer has ended.
func (responses) part(b []byte, a *answer, ended bool) []byte {
	b = append(b, `{"type":"output_text","annotations":[],"logprobs":[],"text":"`...)
	if ended {
		b = a.text(b)
	}
	return append(b, `"}`...)
}

// place appends the fields that identify the message and the part to which an event refers.
func (responses) place(b []byte, a *answer) []byte {
	b = append(append(b, `,"item_id":"msg_`...), a.ID...)
	return append(b, `","output_index":0,"content_index":0`...)
}

func (r responses) head(b []byte, a *answer) []byte {
	for _, kind := range [...]string{"response.created", "response.in_progress"} {
		b = append(r.event(b, a, kind), `,"response":`...)
		b = append(r.response(b, a, "in_progress"), "}\n\n"...)
	}
	b = append(r.event(b, a, "response.output_item.added"), `,"output_index":0,"item":`...)
	b = append(r.item(b, a, "in_progress"), "}\n\n"...)
	b = append(r.place(r.event(b, a, "response.content_part.added"), a), `,"part":`...)
	return append(r.part(b, a, false), "}\n\n"...)
}

func (r responses) chunk(b []byte, a *answer, k int) []byte {
	b = append(r.place(r.event(b, a, "response.output_text.delta"), a), `,"delta":"`...)
	return append(a.token(b, k, a.Fault), "\",\"logprobs\":[]}\n\n"...)
}

func (r responses) tail(b []byte, a *answer) []byte {
	b = append(r.place(r.event(b, a, "response.output_text.done"), a), `,"text":"`...)
	b = append(a.text(b), "\",\"logprobs\":[]}\n\n"...)
	b = append(r.place(r.event(b, a, "response.content_part.done"), a), `,"part":`...)
	b = append(r.part(b, a, true), "}\n\n"...)
	b = append(r.event(b, a, "response.output_item.done"), `,"output_index":0,"item":`...)
	return append(r.item(b, a, r.status(a)), "}\n\n"...)
}

func (r responses) terminal(b []byte, a *answer) []byte {
	status := r.status(a)
	b = append(r.event(b, a, "response."+status), `,"response":`...)
	return append(r.response(b, a, status), "}\n\n"...)
}

func (r responses) failure(b []byte, a *answer) []byte {
	b = append(r.event(b, a, "error"), `,"code":"server_error","message":`...)
	return append(appendString(b, failureMessage), ",\"param\":null}\n\n"...)
}

func (r responses) appendComplete(b []byte, a *answer) []byte { return r.response(b, a, r.status(a)) }

func (responses) status(a *answer) string {
	if a.Fault.Kind == LengthLimit {
		return "incomplete"
	}
	return "completed"
}
