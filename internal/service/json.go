package service

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxDepth limits the nesting of a payload. Deeper ones count as malformed: each level needs stack.
const maxDepth = 1000

// maxPaths is the number of paths that one description can have: number, marker, time, checksum and id.
const maxPaths = 5

// document is the payload of a block as JSON.
type document struct {
	data  []byte
	found [maxPaths]gjson.Result // value at each path
}

// parseJSON looks paths up in a payload, and reports whether it is valid JSON. It walks the members itself: a path of
// gjson has wildcards and queries, and finds the first member of a name, whereas in browsers and in encoding/json the
// last one counts.
func parseJSON(data []byte, paths [][]segment) (d document, ok bool) {
	if !validJSON(data) {
		return d, false
	}
	d.data = data
	forEach(gjson.ParseBytes(data), func(key, value gjson.Result) {
		for i, path := range paths {
			if path[0].names(key) {
				d.found[i] = descend(value, path[1:])
			}
		}
	})
	return d, true
}

// validJSON reports whether data is one JSON value that is nested at most maxDepth levels.
func validJSON(data []byte) bool { return !tooDeep(data) && gjson.ValidBytes(data) }

// tooDeep reports whether JSON is nested over maxDepth levels.
func tooDeep(data []byte) bool {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= maxDepth {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			if depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// forEach visits each member of an object, and each item of a list, with its name or index as the key.
func forEach(in gjson.Result, visit func(key, value gjson.Result)) {
	in.ForEach(func(key, value gjson.Result) bool {
		if key.Type == gjson.String {
			key.Str = unquote(key.Raw)
		}
		visit(key, value)
		return true
	})
}

// names reports whether the segment leads to the member or item with that key.
func (s *segment) names(key gjson.Result) bool {
	if s.index < 0 {
		return key.Type == gjson.String && key.Str == s.key
	}
	return key.Type == gjson.Number && int(key.Num) == s.index
}

// descend returns the value that a path leads to from another value.
func descend(from gjson.Result, path []segment) gjson.Result {
	for i := range path {
		var below gjson.Result
		forEach(from, func(key, value gjson.Result) {
			if path[i].names(key) {
				below = value
			}
		})
		from = below
	}
	return from
}

// value returns the value at a path; null counts as missing.
func (d *document) value(path int) (v value, ok bool) {
	at := d.found[path]
	raw := d.data[at.Index : at.Index+len(at.Raw)]
	switch at.Type {
	case gjson.Null:
		return v, false
	case gjson.Number:
		return value{text: raw, scalar: true}, true
	case gjson.String:
		quoted := raw[1 : len(raw)-1]
		if text := unquote(at.Raw); text != string(quoted) {
			return value{text: []byte(text), scalar: true, decoded: true}, true
		}
		return value{text: quoted, scalar: true}, true
	}
	return value{text: raw}, true
}

// unquote returns the text of a valid JSON string. Broken UTF-8 and half a surrogate pair become U+FFFD, which
// gjson does not do.
func unquote(raw string) string {
	text := raw[1 : len(raw)-1]
	if strings.IndexByte(text, '\\') < 0 && utf8.ValidString(text) {
		return text
	}
	return decodeString(raw)
}

// decodeString decodes a valid JSON string as encoding/json does.
func decodeString(raw string) (text string) {
	_ = json.Unmarshal([]byte(raw), &text)
	return text
}
