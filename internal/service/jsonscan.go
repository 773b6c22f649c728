package service

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxPaths is how many paths one description can have: number, marker, time, checksum and id.
const maxPaths = 5

// maxDepth is how far a payload may be nested. Deeper ones are malformed: no service means them, and each
// level needs stack.
const maxDepth = 1000

// paths are looked up together, in one pass over a payload.
type paths struct {
	steps [maxPaths][]segment
	n     int
}

// set has a bit for each path.
type set uint8

// add takes a path in and returns its number.
func (p *paths) add(steps []segment) int {
	p.steps[p.n] = steps
	p.n++
	return p.n - 1
}

// span is where in the payload a path led to. It has no pointer, so the spans of a payload stay on the stack.
type span struct {
	start, end int  // of a string: what stands between the quotes, escapes as they are
	kind       byte // 0: nothing; '"', '0' for a number, '{', '[', 't', 'f' or 'n'
}

// scan checks that data is one JSON value, and finds where the paths lead. Where a name is there more than
// once the last one counts, as in encoding/json and in browsers. It allocates nothing.
func (p *paths) scan(data []byte, found *[maxPaths]span) bool {
	s := scanner{data: data, paths: p, found: found}
	ok := s.value(0, set(1<<p.n-1))
	s.space()
	return ok && s.pos == len(data)
}

type scanner struct {
	data  []byte
	pos   int
	depth int
	paths *paths
	found *[maxPaths]span
}

// value reads one value; here are the paths whose first steps, level of them, led to it.
func (s *scanner) value(level int, here set) (ok bool) {
	s.space()
	if s.pos == len(s.data) {
		return false
	}
	start, kind := s.pos, s.data[s.pos]
	switch kind {
	case '{', '[':
		if s.depth++; s.depth > maxDepth {
			return false
		}
		s.pos++
		if kind == '{' {
			ok = s.object(level, here)
		} else {
			ok = s.list(level, here)
		}
		s.depth--
	case '"':
		ok = s.text()
	case 't':
		ok = s.word("true")
	case 'f':
		ok = s.word("false")
	case 'n':
		ok = s.word("null")
	default:
		kind = '0'
		ok = s.number()
	}
	if ok && here != 0 {
		s.keep(level, here, kind, start)
	}
	return ok
}

// keep notes the value that ends here for the paths that end with it.
func (s *scanner) keep(level int, here set, kind byte, start int) {
	v := span{start, s.pos, kind}
	if kind == '"' {
		v.start++
		v.end--
	}
	for rest := here; rest != 0; rest &= rest - 1 {
		if i := bits.TrailingZeros8(uint8(rest)); len(s.paths.steps[i]) == level {
			s.found[i] = v
		}
	}
}

// object reads the rest of an object.
func (s *scanner) object(level int, here set) bool {
	if s.space(); s.take('}') {
		return true
	}
	for {
		s.space()
		start := s.pos
		if start == len(s.data) || s.data[start] != '"' || !s.text() {
			return false
		}
		below := s.member(level, here, s.data[start+1:s.pos-1])
		if s.space(); !s.take(':') || !s.value(level+1, below) {
			return false
		}
		if s.space(); s.take(',') {
			continue
		}
		return s.take('}')
	}
}

// list reads the rest of a list.
func (s *scanner) list(level int, here set) bool {
	if s.space(); s.take(']') {
		return true
	}
	for i := 0; ; i++ {
		if !s.value(level+1, s.item(level, here, i)) {
			return false
		}
		if s.space(); s.take(',') {
			continue
		}
		return s.take(']')
	}
}

// member are the paths that lead into the member of that name, which is as it stands in the payload. What an
// earlier member of the same name held does not count.
func (s *scanner) member(level int, here set, name []byte) (below set) {
	for rest := here; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros8(uint8(rest))
		steps := s.paths.steps[i]
		if level < len(steps) && steps[level].begins(name) && equal(name, steps[level].key, steps[level].odd) {
			below |= 1 << i
			s.found[i] = span{}
		}
	}
	return below
}

// item are the paths that lead into that item.
func (s *scanner) item(level int, here set, index int) (below set) {
	for rest := here; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros8(uint8(rest))
		if steps := s.paths.steps[i]; level < len(steps) && steps[level].index == index {
			below |= 1 << i
		}
	}
	return below
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) take(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// special has the top bit set of bytes that are a quote, a backslash or a control character; bytes behind the
// first of these may be marked wrongly.
func special(x uint64) uint64 {
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*0x20)&^x) & tops
}

// text reads a string from its quote on.
func (s *scanner) text() bool {
	data, i := s.data, s.pos+1
	for {
		for i+8 <= len(data) {
			found := special(binary.LittleEndian.Uint64(data[i:]))
			if found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		if i == len(data) {
			return false
		}
		switch c := data[i]; {
		case c == '"':
			s.pos = i + 1
			return true
		case c < 0x20:
			return false
		case c == '\\':
			n := escapeLength(data[i:])
			if n == 0 {
				return false
			}
			i += n
		default:
			i++
		}
	}
}

// escapeLength is the number of bytes of an escape, 0 for one that is none.
func escapeLength(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := unicode(text); ok {
			return 6
		}
	}
	return 0
}

// unicode reads \uXXXX.
func unicode(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number reads a number.
func (s *scanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// equal compares what stands between the quotes of a valid JSON string with a text; odd says that the text
// has U+FFFD in it, which broken UTF-8 and half a surrogate pair are read as.
func equal(raw []byte, want string, odd bool) bool {
	escaped := bytes.IndexByte(raw, '\\') >= 0
	if !escaped && !odd {
		return string(raw) == want
	}
	for len(raw) > 0 && want != "" {
		r, n := unescape(raw)
		w, m := utf8.DecodeRuneInString(want)
		if r != w {
			return false
		}
		raw, want = raw[n:], want[m:]
	}
	return len(raw) == 0 && want == ""
}

// unescape reads the first character of what stands between the quotes of a valid JSON string.
func unescape(raw []byte) (r rune, n int) {
	if raw[0] != '\\' {
		return utf8.DecodeRune(raw)
	}
	switch raw[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, _ = unicode(raw)
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if second, ok := unicode(raw[6:]); ok {
			if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return rune(raw[1]), 2
}
