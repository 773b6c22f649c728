package model

// chat is OpenAI's API /v1/chat/completions.
var chat = api{
	name: "openai-chat", path: "/v1/chat/completions",
	head:    chatEvent(`{"role":"assistant","content":"","refusal":null}`, "null"),
	chunk:   chatEvent(`{"content":"$token"}`, "null"),
	usage:   "data: " + chatObject("chat.completion.chunk", `"choices":[],"usage":`+chatUsage) + "\n\n",
	failure: "data: " + chatError(`"`+failureMessage+`"`, "api_error") + "\n\n",
	refusal: chatError("$message", "$type"),
	end:     chatEnding(`"stop"`), limitEnd: chatEnding(`"length"`),
}

const chatUsage = `{"prompt_tokens":$prompt,"completion_tokens":$chunks,"total_tokens":$total}`

func chatObject(kind, fields string) string {
	return `{"id":"chatcmpl-$id","object":"` + kind + `","created":$created,"model":$model,` + fields + "}"
}

// chatEvent returns an event with a choice. reason is JSON: a string, or null before the end.
func chatEvent(delta, reason string) string {
	return "data: " + chatObject("chat.completion.chunk",
		`"choices":[{"index":0,"delta":`+delta+`,"logprobs":null,"finish_reason":`+reason+`}]$usage`) + "\n\n"
}

func chatEnding(reason string) ending {
	return ending{
		tail: chatEvent("{}", reason), terminal: "data: [DONE]\n\n",
		complete: chatObject("chat.completion", `"choices":[{"index":0,"message":{"role":"assistant","content":"$text",`+
			`"refusal":null},"logprobs":null,"finish_reason":`+reason+`}],"usage":`+chatUsage),
	}
}

func chatError(message, kind string) string {
	return `{"error":{"message":` + message + `,"type":"` + kind + `","param":null,"code":null}}`
}

// responses is OpenAI's API /v1/responses.
var responses = api{
	name: "openai-responses", path: "/v1/responses",
	head: responseEvent("response.created", `"response":`+responseInProgress) +
		responseEvent("response.in_progress", `"response":`+responseInProgress) +
		responseEvent("response.output_item.added", `"output_index":0,"item":`+responseItem("in_progress", "")) +
		responseEvent("response.content_part.added", responsePlace+`,"part":`+responsePart("")),
	chunk:   responseEvent("response.output_text.delta", responsePlace+`,"delta":"$token","logprobs":[]`),
	failure: responseEvent("error", `"code":"server_error","message":"`+failureMessage+`","param":null`),
	refusal: chat.refusal,
	end:     responseEnding("completed", "null"), limitEnd: responseEnding("incomplete", `{"reason":"max_output_tokens"}`),
}

// responsePlace identifies the message and the part to which an event refers.
const responsePlace = `"item_id":"msg_$id","output_index":0,"content_index":0`

var responseInProgress = responseObject("in_progress", "null", "", "null")

// responseEvent returns an event of a type. The events of a response are numbered.
func responseEvent(kind, fields string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + `","sequence_number":$sequence,` + fields + "}\n\n"
}

func responseObject(status, details, output, usage string) string {
	return `{"id":"resp_$id","object":"response","created_at":$created,"status":"` + status +
		`","background":false,"error":null,"incomplete_details":` + details +
		`,"instructions":null,"max_output_tokens":null,"metadata":{},"model":$model,"output":[` + output +
		`],"parallel_tool_calls":true,"previous_response_id":null,"store":false,"temperature":1,` +
		`"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1,"truncation":"disabled","usage":` + usage + "}"
}

// responseItem returns the message of the response. It has no content before the end.
func responseItem(status, content string) string {
	return `{"id":"msg_$id","type":"message","status":"` + status + `","role":"assistant","content":[` + content + "]}"
}

// responsePart returns the only part of the message.
func responsePart(text string) string {
	return `{"type":"output_text","annotations":[],"logprobs":[],"text":"` + text + `"}`
}

func responseEnding(status, details string) ending {
	item := responseItem(status, responsePart("$text"))
	complete := responseObject(status, details, item, `{"input_tokens":$prompt,"input_tokens_details":{"cached_tokens":0},`+
		`"output_tokens":$chunks,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":$total}`)
	return ending{
		tail: responseEvent("response.output_text.done", responsePlace+`,"text":"$text","logprobs":[]`) +
			responseEvent("response.content_part.done", responsePlace+`,"part":`+responsePart("$text")) +
			responseEvent("response.output_item.done", `"output_index":0,"item":`+item),
		terminal: responseEvent("response."+status, `"response":`+complete), complete: complete,
	}
}
