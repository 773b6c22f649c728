package model

// anthropic is Anthropic's API /v1/messages.
var anthropic = api{
	name: "anthropic-messages", path: "/v1/messages",
	head: messageEvent("message_start", `"message":`+messageObject("", "null", "1")) +
		messageEvent("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`) +
		"event: ping\ndata: {\"type\":\"ping\"}\n\n",
	chunk:   messageEvent("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"$token"}`),
	failure: messageEvent("error", messageError(`"`+failureMessage+`"`, "api_error")),
	refusal: `{"type":"error",` + messageError("$message", "$type") + "}",
	end:     messageEnding(`"end_turn"`), limitEnd: messageEnding(`"max_tokens"`),
}

func messageEvent(kind, fields string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + `",` + fields + "}\n\n"
}

func messageObject(content, reason, outputTokens string) string {
	return `{"id":"msg_$id","type":"message","role":"assistant","model":$model,"content":[` + content + `],"stop_reason":` + reason +
		`,"stop_sequence":null,"usage":{"input_tokens":$prompt,"output_tokens":` + outputTokens + "}}"
}

func messageError(message, kind string) string {
	return `"error":{"type":"` + kind + `","message":` + message + "}"
}

func messageEnding(reason string) ending {
	return ending{
		tail: messageEvent("content_block_stop", `"index":0`) +
			messageEvent("message_delta", `"delta":{"stop_reason":`+reason+`,"stop_sequence":null},"usage":{"output_tokens":$chunks}`),
		terminal: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		complete: messageObject(`{"type":"text","text":"$text"}`, reason, "$chunks"),
	}
}
