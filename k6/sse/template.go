package sse

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"strings"
)

// A firstEvent is the event that provides values for a second request.
type firstEvent struct {
	ID   string `js:"id"`   // the last event ID after the event
	Name string `js:"name"` // "" if it has none
	Data string `js:"data"`
}

// A template is a text with placeholders for parts of the first event: {first.id}, {first.name} and {first.data}. Other
// braces are literal, so JSON needs no escapes.
type template struct {
	before []string // the text before each placeholder
	fields []func(*firstEvent) string
	rest   string
}

const placeholder = "{first."

// parseTemplate parses a template. It returns an error for an unknown placeholder.
func parseTemplate(text string) (*template, error) {
	t := &template{}
	for {
		before, after, found := strings.Cut(text, placeholder)
		if !found {
			t.rest = text
			return t, nil
		}
		name, rest, closed := strings.Cut(after, "}")
		field := fieldOf(name)
		if !closed || field == nil {
			return nil, fmt.Errorf("unknown placeholder %.40q; use {first.id}, {first.name} or {first.data}", placeholder+after)
		}
		t.before, t.fields, text = append(t.before, before), append(t.fields, field), rest
	}
}

func fieldOf(name string) func(*firstEvent) string {
	switch name {
	case "id":
		return func(e *firstEvent) string { return e.ID }
	case "name":
		return func(e *firstEvent) string { return e.Name }
	case "data":
		return func(e *firstEvent) string { return e.Data }
	default:
		return nil
	}
}

// isPlaceholder reports whether the template consists of a single placeholder.
func (t *template) isPlaceholder() bool {
	return len(t.fields) == 1 && t.before[0] == "" && t.rest == ""
}

// fill returns the text with escaped values of an event.
func (t *template) fill(e *firstEvent, escape func(string) string) string {
	var b strings.Builder
	for i, field := range t.fields {
		b.WriteString(t.before[i])
		b.WriteString(escape(field(e)))
	}
	b.WriteString(t.rest)
	return b.String()
}

// noEscape returns s unchanged, for headers and for bodies of an unknown type.
func noEscape(s string) string { return s }

// escapeURL escapes a value as encodeURIComponent does, so that it stays within its path segment or query parameter.
func escapeURL(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// escapeJSON escapes a value for a JSON string.
func escapeJSON(s string) string {
	quoted, _ := json.Marshal(s) // does not fail for a string
	return string(quoted[1 : len(quoted)-1])
}

// escapeFor returns the escape function for values in a body of a media type.
func escapeFor(contentType string) func(string) string {
	media, _, _ := mime.ParseMediaType(contentType)
	switch {
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		return escapeJSON
	case media == "application/x-www-form-urlencoded":
		return escapeURL
	default:
		return noEscape
	}
}
