package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
)

// describe writes the description of a hub to a file, as a JavaScript module.
func (h *hubSpec) describe(path string) error {
	text, err := json.MarshalIndent(h.description(), "", "  ")
	if err != nil {
		return err
	}
	module := "export default " + string(text) + ";\n"
	if h.Token != "" {
		module = "let first;\nexport default { ..." + string(text) + ", token: " + tokens[h.Token] + " };\n"
	}
	return os.WriteFile(path, []byte(module), 0o644)
}

type object = map[string]any

// description returns the description of the hub, without the token function.
func (h *hubSpec) description() object {
	connect := object{"url": h.url("s", map[string]string{"topic": "{topic}", "id": "{id}"})}
	if h.IDInHeader {
		connect["url"] = h.url("s", map[string]string{"topic": "{topic}"})
		connect["headers"] = object{"X-Stream": "{id}"}
	}
	if h.Token != "" {
		headers, _ := connect["headers"].(object)
		if headers == nil {
			headers = object{}
		}
		headers["Authorization"], connect["headers"] = "Bearer {token}", headers
	}
	if h.SecondRequest {
		connect["then"] = object{"event": "hello", "client": "json:$.you.id", "url": "{base}/join/{client}", "body": `{"topic":"{topic}"}`, "ok": []int{202}}
	}
	out := object{"name": "campaign", "connect": connect, "message": h.Message}
	if h.Message == nil {
		out["message"], out["publish"] = h.messages(), h.publishField()
	}
	if h.Token != "" {
		out["token"] = true // a placeholder for the function that describe adds
	}
	if h.Heartbeat != "" {
		heartbeat := maps.Clone(heartbeats[h.Heartbeat].described)
		if h.StatedInterval > 0 {
			heartbeat["every"] = h.StatedInterval
		}
		out["heartbeat"] = heartbeat
	}
	switch h.End {
	case "request":
		out["end"] = object{"by": "request", "method": "DELETE", "url": "{base}/end?id={id}"}
	case "server":
		out["end"] = object{"by": "server", "lifetime": []float64{h.Lifetime, h.Lifetime * 1.2}}
	}
	resume := object{"by": h.Resume}
	switch h.Resume {
	case "query":
		resume["by"] = object{"query": "since"}
	case "data":
		resume = object{"by": object{"query": "since"}, "id": "json:$.id"}
	}
	switch h.Gap {
	case "event":
		resume["gap"] = object{"event": "reset"}
	case "header":
		resume["gap"] = object{"header": "X-Gap: yes"}
	}
	out["resume"] = resume
	return out
}

func (h *hubSpec) url(path string, parameters map[string]string) string {
	url := "{base}/" + path
	var query []string
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if value := parameters[name]; name == "topic" && h.TopicInPath {
			url += "/" + value
		} else {
			query = append(query, name+"="+value)
		}
	}
	if len(query) > 0 {
		url += "?" + strings.Join(query, "&")
	}
	return url
}

func (h *hubSpec) messages() object {
	out := object{"seq": h.source("seq")}
	if h.HasMarker {
		out["run"] = h.source("run")
	}
	if h.HasTime {
		out["sentAt"] = h.source("t")
	}
	if h.HasChecksum {
		out["sum"] = h.source("sum")
	}
	switch len(h.Events) {
	case 0:
	case 1:
		out["event"] = h.Events[0]
	default:
		out["event"] = h.Events
	}
	if h.Order != "" {
		out["order"] = h.Order
	}
	if h.Delivery != "" {
		out["delivery"] = h.Delivery
	}
	return out
}

func (h *hubSpec) source(name string) string {
	switch {
	case h.Form == formID && name == "seq" && h.IDs == idsNumber:
		return "id"
	case h.Form == formID && name == "seq":
		return "id:^[a-z]+-([0-9]+)$"
	case h.Form == formWords && name == "seq":
		return "data:seq=([0-9]+) "
	case h.Form == formWords:
		return "data: " + name + "=([^ ]+) "
	case h.Form == formTags:
		return map[string]string{"run": "json:$.tags[0]", "seq": "json:$.tags[1]", "t": "json:$.tags[2]", "sum": "json:$.tags[3]"}[name]
	case h.Form == formNested:
		return map[string]string{"run": "json:$.meta['by whom'].run", "seq": "json:$.items[1].n", "t": "json:$.meta.t", "sum": "json:$['check'].sum"}[name]
	}
	return "json:$." + name
}

func (h *hubSpec) publishField() object {
	values := map[string]string{"seq": "{seq}"}
	if h.HasMarker {
		values["run"] = "{run}"
	}
	if h.HasTime && h.Skew == 0 {
		values["t"] = "{sentAt}"
	}
	if h.HasChecksum {
		values["sum"] = "{sum}"
	}
	topic := map[string]string{"topic": "{topic}"}
	out := object{"method": h.Method, "ok": []int{h.Status, 207}}
	var parts []string
	headers := object{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch h.MessageIn {
		case "json":
			value := values[name]
			if name == "run" || name == "sum" {
				value = `"` + value + `"`
			}
			parts = append(parts, `"`+name+`":`+value)
		case "form":
			parts = append(parts, name+"="+values[name])
		case "headers":
			headers["X-Soak-"+name] = values[name]
		case "query":
			topic[name] = values[name]
		}
	}
	switch h.MessageIn {
	case "json":
		out["body"] = "{" + strings.Join(parts, ",") + "}"
	case "form":
		out["body"] = strings.Join(parts, "&")
		headers["Content-Type"] = "application/x-www-form-urlencoded"
	case "headers":
		out["body"] = "soak"
	}
	if len(headers) > 0 {
		out["headers"] = headers
	}
	out["url"] = h.url("p", topic)
	return out
}
