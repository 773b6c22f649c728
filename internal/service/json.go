package service

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"
)

// maxDepth limits the nesting of a payload, because each level uses stack space. A deeper payload counts as malformed.
const maxDepth = 1000

const maxPaths = 24

type document struct {
	data   []byte
	values [maxPaths]gjson.Result // by path
}

// documents is a pool, because documents are large and each message needs one.
var documents = sync.Pool{New: func() any { return new(document) }}

// parse parses the data of a block if the description has paths. valid is false if the data should be JSON and is not.
// The caller must return the document to the pool after its last use.
func (s *Service) parse(data []byte) (d *document, valid bool) {
	d = documents.Get().(*document) // the pool contains no other type
	clear(d.values[:len(s.paths)])
	return d, len(s.branches) == 0 || parseJSON(d, data, s.branches)
}

// A branch is a step that several paths may share, so that each value is visited only once.
type branch struct {
	segment
	paths    []int // paths that end here
	children []branch
}

func branches(paths [][]segment) (out []branch) {
	for number, path := range paths {
		at := &out
		for i, step := range path {
			k := slices.IndexFunc(*at, func(b branch) bool { return b.segment == step })
			if k < 0 {
				k = len(*at)
				*at = append(*at, branch{segment: step})
			}
			if i == len(path)-1 {
				(*at)[k].paths = append((*at)[k].paths, number)
			}
			at = &(*at)[k].children
		}
	}
	return out
}

// parseJSON looks up paths in a payload, and reports whether the payload is valid JSON. It does not use the paths of
// gjson, because they may contain wildcards and queries. If several members have the same name, those paths find the
// first member, whereas browsers and encoding/json use the last.
func parseJSON(d *document, data []byte, paths []branch) (ok bool) {
	if !validJSON(data) {
		return false
	}
	d.data = data
	d.visit(gjson.Parse(unsafe.String(unsafe.SliceData(data), len(data))), paths) // #nosec G103 -- the results do not outlive data
	return true
}

func (d *document) visit(parent gjson.Result, paths []branch) {
	parent.ForEach(func(key, value gjson.Result) bool { // the key is a name or an index
		if key.Type == gjson.String {
			key.Str = unquote(key.Raw)
		}
		for i := range paths {
			if b := &paths[i]; b.names(key) {
				d.record(b, value)
			}
		}
		return true
	})
}

// record stores the value of a branch. It replaces an earlier member of the same name, including all values below it.
func (d *document) record(b *branch, value gjson.Result) {
	for _, path := range b.paths {
		d.values[path] = value
	}
	for i := range b.children {
		d.record(&b.children[i], gjson.Result{})
	}
	if len(b.children) > 0 && (value.IsObject() || value.IsArray()) {
		d.visit(value, b.children)
	}
}

func validJSON(data []byte) bool { return !isTooDeep(data) && gjson.ValidBytes(data) }

func isTooDeep(data []byte) bool {
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

func (s *segment) names(key gjson.Result) bool {
	if s.index < 0 {
		return key.Type == gjson.String && key.Str == s.key
	}
	return key.Type == gjson.Number && int(key.Num) == s.index
}

// value returns the value at a path; null counts as missing.
func (d *document) value(path int) (v value, ok bool) {
	at := d.values[path]
	raw := d.data[at.Index : at.Index+len(at.Raw)]
	switch at.Type {
	case gjson.Null:
		return v, false
	case gjson.Number:
		return value{text: raw, scalar: true}, true
	case gjson.String:
		quoted := raw[1 : len(raw)-1]
		if text := unquote(at.Raw); text != string(quoted) {
			return value{text: []byte(text), scalar: true}, true
		}
		return value{text: quoted, scalar: true}, true
	}
	return value{text: raw}, true
}

// unquote returns the text of a valid JSON string. It replaces invalid UTF-8 and lone surrogates with U+FFFD, unlike
// gjson.
func unquote(raw string) string {
	text := raw[1 : len(raw)-1]
	if strings.IndexByte(text, '\\') < 0 && utf8.ValidString(text) {
		return text
	}
	return decodeString(raw)
}

// decodeString is a separate function, so that text escapes to the heap only if a string must be decoded.
func decodeString(raw string) (text string) {
	_ = json.Unmarshal([]byte(raw), &text)
	return text
}
