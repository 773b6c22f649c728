package probe

// An api contains the end conditions of a module in load-tests/services.
type api struct {
	module                   string
	done, failed, incomplete any // nil: for done, the observed terminal event; for the others, no condition
}

func eventIs(name string) object { return object{{name: "event", value: name}} }

func valueIs(path, value string) object {
	return object{{name: "json", value: path}, {name: "is", value: value}}
}

func valueAt(path string) object { return object{{name: "json", value: path}} }

// apis maps the JavaScript literal of a terminal event to the API.
var apis = map[string]api{
	literal(object{{name: "data", value: "[DONE]"}}): {
		module: "openai-chat",
		failed: []any{valueAt("$.error"), eventIs("error")},
		incomplete: []any{
			valueIs("$.choices[0].finish_reason", "length"), valueIs("$.choices[0].finish_reason", "content_filter"),
			valueIs("$.choices[0].finish_reason", "abort"),
		},
	},
	literal(eventIs("response.completed")): {
		module: "openai-responses",
		done:   []any{eventIs("response.completed"), eventIs("response.incomplete")},
		failed: []any{
			eventIs("response.failed"), valueIs("$.response.status", "failed"),
			eventIs("response.cancelled"), valueIs("$.response.status", "cancelled"), eventIs("error"),
		},
		incomplete: []any{eventIs("response.incomplete"), valueIs("$.response.status", "incomplete")},
	},
	literal(eventIs("message_stop")): {
		module:     "anthropic-messages",
		failed:     eventIs("error"),
		incomplete: []any{valueIs("$.delta.stop_reason", "max_tokens"), valueIs("$.delta.stop_reason", "refusal")},
	},
	literal(valueIs("$.type", "RUN_FINISHED")): {module: "ag-ui", failed: valueIs("$.type", "RUN_ERROR")},
	literal(eventIs("complete")):               {module: "graphql-sse", failed: valueAt("$.errors")},
}
