package probe

// An api describes the ends of a response as a module of load-tests/services does.
type api struct {
	module                   string
	done, failed, incomplete any // nil: the API has no terminal event besides the observed one (done), or no such end
}

func eventIs(name string) object { return object{{name: "event", value: name}} }

func valueIs(path, value string) object {
	return object{{name: "json", value: path}, {name: "is", value: value}}
}

func valueAt(path string) object { return object{{name: "json", value: path}} }

// apis are the APIs that are known by their terminal event.
var apis = map[string]api{
	literal(object{{name: "data", value: "[DONE]"}}): {
		module:     "openai-chat",
		failed:     []any{valueAt("$.error"), eventIs("error")},
		incomplete: []any{valueIs("$.choices[0].finish_reason", "length"), valueIs("$.choices[0].finish_reason", "content_filter")},
	},
	literal(eventIs("response.completed")): {
		module:     "openai-responses",
		done:       []any{eventIs("response.completed"), eventIs("response.incomplete")},
		failed:     []any{eventIs("response.failed"), eventIs("error")},
		incomplete: eventIs("response.incomplete"),
	},
	literal(eventIs("message_stop")): {
		module:     "anthropic-messages",
		failed:     eventIs("error"),
		incomplete: []any{valueIs("$.delta.stop_reason", "max_tokens"), valueIs("$.delta.stop_reason", "refusal")},
	},
	literal(valueIs("$.type", "RUN_FINISHED")): {module: "ag-ui", failed: valueIs("$.type", "RUN_ERROR")},
	literal(eventIs("complete")):               {module: "graphql-sse", failed: valueAt("$.errors")},
}

// doneOr returns the terminal events of the API in addition to the observed one.
func (a *api) doneOr(seen object) any {
	if a.done != nil {
		return a.done
	}
	return seen
}
