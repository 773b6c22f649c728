package service

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"unicode/utf8"
)

// maxDepth limits the nesting of a payload. Deeper ones count as malformed: each level needs stack.
const maxDepth = 1000

// maxPaths is the number of paths that one description can have.
const maxPaths = 24

// document is the payload of a block as JSON.
type document struct {
	data  []byte
	found [maxPaths]span // value at each path
}

// A span is the place of a value in a payload; the zero value is none.
type span struct{ from, to int }

// documents are reused: they are large, and one is needed for each message.
var documents = sync.Pool{New: func() any { return new(document) }}

// parse parses the data of a block where the description has paths. The caller puts the document back after its last use.
func (s *Service) parse(data []byte) (d *document, valid bool) {
	d = documents.Get().(*document) // only these are put there
	clear(d.found[:len(s.paths)])
	return d, len(s.branches) == 0 || parseJSON(d, data, s.branches)
}

// A branch is a step of one or more paths: paths of one description have steps in common, and each value is visited once.
type branch struct {
	segment
	paths []int // that end here
	below []branch
}

// branches returns the paths of a description as a tree.
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
			at = &(*at)[k].below
		}
	}
	return out
}

// parseJSON looks paths up in a payload, and reports whether it is valid JSON. It reads the payload once. Of two members of a name the
// last one counts, as in browsers and in encoding/json.
func parseJSON(d *document, data []byte, paths []branch) (ok bool) {
	d.data = data
	s, ok := d.read(0, paths, 0)
	if ok && d.skip(s.to) == len(data) {
		return true
	}
	clear(d.found[:])
	return false
}

// validJSON reports whether data is one JSON value that is nested at most maxDepth levels.
func validJSON(data []byte) bool { return parseJSON(new(document), data, nil) }

// read reads a value that begins at a place or after the white space there, and notes what the paths below it lead to.
func (d *document) read(at int, paths []branch, depth int) (s span, ok bool) {
	if at = d.skip(at); at == len(d.data) {
		return s, false
	}
	s.from = at
	switch c := d.data[at]; c {
	case '{':
		s.to, ok = d.object(at, paths, depth+1)
	case '[':
		s.to, ok = d.list(at, paths, depth+1)
	case '"':
		s.to, _, ok = d.text(at)
	case 't':
		s.to, ok = d.literal(at, "true")
	case 'f':
		s.to, ok = d.literal(at, "false")
	case 'n':
		s.to, ok = d.literal(at, "null")
	default:
		s.to, ok = d.number(at)
	}
	return s, ok
}

// object reads an object, and returns its end.
func (d *document) object(at int, paths []branch, depth int) (end int, ok bool) {
	if depth > maxDepth {
		return 0, false
	}
	if at = d.skip(at + 1); d.has(at, '}') {
		return at + 1, true
	}
	for {
		if at = d.skip(at); !d.has(at, '"') {
			return 0, false
		}
		end, plain, ok := d.text(at)
		if !ok {
			return 0, false
		}
		name := d.data[at:end]
		if at = d.skip(end); !d.has(at, ':') {
			return 0, false
		}
		at, ok = d.member(at+1, named(paths, name, plain), depth)
		switch at = d.skip(at); {
		case ok && d.has(at, '}'):
			return at + 1, true
		case !ok || !d.has(at, ','):
			return 0, false
		}
		at++
	}
}

// list reads a list, and returns its end.
func (d *document) list(at int, paths []branch, depth int) (end int, ok bool) {
	if depth > maxDepth {
		return 0, false
	}
	if at = d.skip(at + 1); d.has(at, ']') {
		return at + 1, true
	}
	for index := 0; ; index++ {
		at, ok = d.member(at, item(paths, index), depth)
		switch at = d.skip(at); {
		case ok && d.has(at, ']'):
			return at + 1, true
		case !ok || !d.has(at, ','):
			return 0, false
		}
		at++
	}
}

// member reads a member or an item, and notes it for its branch, nil for none. An earlier member of the same name does not count, nor
// what is below it.
func (d *document) member(at int, b *branch, depth int) (end int, ok bool) {
	if b == nil {
		s, ok := d.read(at, nil, depth)
		return s.to, ok
	}
	d.note(b, span{})
	s, ok := d.read(at, b.below, depth)
	for _, path := range b.paths {
		d.found[path] = s
	}
	return s.to, ok
}

// note notes a value for a branch, and none for those below it.
func (d *document) note(b *branch, s span) {
	for _, path := range b.paths {
		d.found[path] = s
	}
	for i := range b.below {
		d.note(&b.below[i], span{})
	}
}

// named returns the branch of the member with a name in quotes, nil for none. A plain name is ASCII without escapes.
func named(paths []branch, name []byte, plain bool) *branch {
	if len(paths) == 0 {
		return nil
	}
	text := name[1 : len(name)-1]
	if !plain {
		text, _ = unquote(name)
	}
	for i := range paths {
		if b := &paths[i]; b.index < 0 && string(text) == b.key {
			return b
		}
	}
	return nil
}

// item returns the branch of an item of a list, nil for none.
func item(paths []branch, index int) *branch {
	for i := range paths {
		if paths[i].index == index {
			return &paths[i]
		}
	}
	return nil
}

// skip returns the next place that has no white space.
func (d *document) skip(at int) int {
	for at < len(d.data) && (d.data[at] == ' ' || d.data[at] == '\n' || d.data[at] == '\r' || d.data[at] == '\t') {
		at++
	}
	return at
}

func (d *document) has(at int, c byte) bool { return at < len(d.data) && d.data[at] == c }

func (d *document) literal(at int, text string) (end int, ok bool) {
	return at + len(text), bytes.HasPrefix(d.data[at:], []byte(text))
}

// text reads a string. It is plain if it is ASCII without escapes.
func (d *document) text(at int) (end int, plain, ok bool) {
	plain = true
	for at++; at < len(d.data); at++ {
		switch c := d.data[at]; {
		case c == '"':
			return at + 1, plain, true
		case c < ' ':
			return 0, false, false
		case c == '\\':
			plain = false
			if at++; !d.escape(at) {
				return 0, false, false
			}
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	return 0, false, false
}

// escape reports whether the rest of an escape sequence is valid. The digits of \u are read as text after it.
func (d *document) escape(at int) bool {
	if at >= len(d.data) {
		return false
	}
	switch d.data[at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
	default:
		return false
	}
	digits := d.data[at+1 : min(at+5, len(d.data))]
	return len(digits) == 4 && !slices.ContainsFunc(digits, func(c byte) bool {
		return (c < '0' || c > '9') && (c|' ' < 'a' || c|' ' > 'f')
	})
}

// number reads a number (RFC 8259, section 6).
func (d *document) number(at int) (end int, ok bool) {
	if d.has(at, '-') {
		at++
	}
	if end = d.digits(at); end == at || end > at+1 && d.data[at] == '0' {
		return 0, false
	}
	if at = end; d.has(at, '.') {
		if end = d.digits(at + 1); end == at+1 {
			return 0, false
		}
		at = end
	}
	if d.has(at, 'e') || d.has(at, 'E') {
		if at++; d.has(at, '+') || d.has(at, '-') {
			at++
		}
		if end = d.digits(at); end == at {
			return 0, false
		}
		at = end
	}
	return at, true
}

// digits returns the end of the digits that begin at a place.
func (d *document) digits(at int) int {
	for at < len(d.data) && d.data[at] >= '0' && d.data[at] <= '9' {
		at++
	}
	return at
}

// value returns the value at a path; null counts as missing.
func (d *document) value(path int) (v value, ok bool) {
	at := d.found[path]
	raw := d.data[at.from:at.to]
	if len(raw) == 0 || raw[0] == 'n' {
		return v, false
	}
	switch c := raw[0]; {
	case c == '"':
		text, decoded := unquote(raw)
		return value{text: text, scalar: true, decoded: decoded}, true
	case c == '-', c >= '0' && c <= '9':
		return value{text: raw, scalar: true}, true
	}
	return value{text: raw}, true
}

// unquote returns the text of a valid JSON string, as encoding/json does: broken UTF-8 and half a surrogate pair become U+FFFD. decoded
// is false if the text is the part between the quotes.
func unquote(raw []byte) (text []byte, decoded bool) {
	text = raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return text, false
	}
	var decodedText string
	_ = json.Unmarshal(raw, &decodedText)
	return []byte(decodedText), true
}
