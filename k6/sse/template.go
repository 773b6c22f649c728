package sse

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"
)

// A firstEvent is the event that provides values for a second request.
type firstEvent struct {
	ID   string `js:"id"`   // the last event ID after the event
	Name string `js:"name"` // "" if the event has none
	Data string `js:"data"`
}

// A template is text with placeholders for parts of the first event: {first.id}, {first.name} and {first.data}. Other
// braces are literal, so JSON needs no escapes.
type template string

const placeholder = "{first."

// parseTemplate returns text as a template, or an error for an unknown placeholder.
func parseTemplate(text string) (template, error) {
	for unread := text; ; {
		_, after, found := strings.Cut(unread, placeholder)
		if !found {
			return template(text), nil
		}
		name, rest, hasEnd := strings.Cut(after, "}")
		if !hasEnd || !slices.Contains([]string{"id", "name", "data"}, name) {
			return "", fmt.Errorf("unknown placeholder %.40q; use {first.id}, {first.name} or {first.data}", placeholder+after)
		}
		unread = rest
	}
}

func (t template) isPlaceholder() bool {
	return t == "{first.id}" || t == "{first.name}" || t == "{first.data}"
}

func (t template) fill(e *firstEvent, escape func(string) string) string {
	return strings.NewReplacer(
		"{first.id}", escape(e.ID), "{first.name}", escape(e.Name), "{first.data}", escape(e.Data),
	).Replace(string(t))
}

// noEscape is for headers, for bodies of an unknown type, and for a URL that is only a placeholder.
func noEscape(s string) string { return s }

// escapeURL percent-encodes a value, so that it stays within its path segment or query parameter.
func escapeURL(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func escapeJSON(s string) string {
	quoted, _ := json.Marshal(s) // does not fail for a string
	return string(quoted[1 : len(quoted)-1])
}

// escapeFor returns the escape function for values in a body with the given Content-Type.
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
