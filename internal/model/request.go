package model

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/tidwall/gjson"
)

const defaultModel = "numbered"

type request struct {
	model  []byte // as a JSON string
	stream bool
	usage  bool   // stream_options.include_usage
	text   string // text of the last user message
}

// readRequest parses the body of a request of any API. The field that contains the messages depends on the API.
func readRequest(body []byte) (request, error) {
	if !gjson.ValidBytes(body) {
		return request{}, errors.New("the body must be JSON")
	}
	root := gjson.ParseBytes(body)
	input := root.Get("messages")
	if !input.Exists() {
		input = root.Get("input")
	}
	if !input.Exists() {
		return request{}, errors.New(`the body must have "messages" or "input"`)
	}
	name := root.Get("model").String()
	if name == "" {
		name = defaultModel
	}
	model, err := json.Marshal(name)
	return request{
		model: model, stream: root.Get("stream").Bool(), usage: root.Get("stream_options.include_usage").Bool(),
		text: lastUserText(input),
	}, err
}

// lastUserText returns the text of the last message whose role is "user", or the input itself if it is a string.
func lastUserText(input gjson.Result) string {
	if input.Type == gjson.String {
		return input.String()
	}
	messages := input.Array()
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Get("role").String() == "user" {
			return contentText(messages[i].Get("content"))
		}
	}
	return ""
}

func contentText(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.String()
	}
	var parts []string
	for _, part := range content.Array() {
		parts = append(parts, part.Get("text").String())
	}
	return strings.Join(parts, "\n")
}
