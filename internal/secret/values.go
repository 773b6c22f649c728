package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Values holds known values of secrets, and finds and replaces them in text.
type Values struct {
	// Common lists the variables of secrets whose values are common words or numbers. Only Redact replaces such a
	// value, next to the name of a secret. Otherwise, words and numbers would be removed from the evidence.
	Common []string

	forms  []form
	starts [256][]int // indexes into forms, by first byte
}

// A form is one encoding of a value. Escapes of JSON, URLs and HTML need no form: they are decoded during the search.
type form struct {
	name     string // the variable; "an address" for the password of an address, "" for a token of Hide
	text     string
	word     bool // matches whole words only, because short values may be parts of other words
	isBase64 bool // the neighboring characters are replaced, too, because they contain some bits of the value
	anyCase  bool // text is in lower case and matches in any case, because host names may be converted to lower case
}

// Minimum lengths of a secret.
const (
	minLength         = 8  // in a variable of another program; a shorter value, such as "yes", occurs in ordinary text
	minLengthProject  = 3  // in one of projectVariables
	minLengthAnywhere = 12 // for matches inside words, in hex and in base64
	minLengthToken    = 4  // for Hide, and for the start of a truncated secret
)

// projectVariables are the variables of this project that contain secrets.
var projectVariables = []string{
	"BACKEND_TOKEN", "SUBSCRIBE_TOKEN", "PUBLISH_TOKEN", "GRAFANA_PASSWORD", "GRAFANA_VIEWER_PASSWORD",
	"PROMETHEUS_PASSWORD", "K6_PROMETHEUS_RW_PASSWORD",
}

// common matches common words and numbers. Random tokens are longer, or mix letters and digits.
var common = regexp.MustCompile(`^(?:[A-Za-z]{1,11}|[0-9.]{1,9}|sse-soak)$`)

// Environment returns the secrets in an environment of NAME=value pairs. It also returns the passwords in addresses,
// and in variables whose value is a URL or the address of a proxy. It ignores short values of variables and common
// passwords.
func Environment(environment []string, addresses ...string) *Values {
	v := &Values{}
	passwordIn := func(name, address string) {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok && password != "" && !common.MatchString(password) {
				v.add(name, password, len(password) < minLengthAnywhere)
			}
		}
	}
	for _, setting := range environment {
		name, value, _ := strings.Cut(setting, "=")
		value = strings.Trim(value, `"'`)
		minimum := minLength
		if slices.Contains(projectVariables, name) {
			minimum = minLengthProject
		}
		switch isSecret := slices.Contains(projectVariables, name) || isSecretVariable(name); {
		case isSecret && len(value) >= minimum && common.MatchString(value):
			v.Common = append(v.Common, name)
		case isSecret && len(value) >= minimum:
			v.add(name, value, len(value) < minLengthAnywhere)
		}
		switch {
		case strings.Contains(value, "://"):
			passwordIn(name, value)
		case strings.HasSuffix(strings.ToUpper(name), "_PROXY"): // the scheme of a proxy is optional
			passwordIn(name, "http://"+value)
		}
	}
	for _, address := range addresses {
		passwordIn("an address", address)
	}
	return v
}

func (v *Values) add(name, value string, word bool) {
	if strings.Contains(Redacted, value) { // a replacement would contain the value again
		return
	}
	forms := []form{{name: name, text: value, word: word}}
	if len(value) >= minLengthAnywhere {
		forms[0].text, forms[0].anyCase = string(toLower([]byte(value))), true
		forms = append(forms, form{name: name, text: hex.EncodeToString([]byte(value)), anyCase: true})
		for _, text := range inBase64(value) {
			forms = append(forms, form{name: name, text: text, isBase64: true})
		}
	}
	for _, f := range forms {
		first := f.text[0]
		v.starts[first] = append(v.starts[first], len(v.forms))
		if f.anyCase && 'a' <= first && first <= 'z' {
			v.starts[first-'a'+'A'] = append(v.starts[first-'a'+'A'], len(v.forms))
		}
		v.forms = append(v.forms, f)
	}
}

// inBase64 returns the base64 characters that depend only on the value. There is a result for each alphabet and each
// offset (modulo 3) of the value in the text before encoding.
func inBase64(value string) (forms []string) {
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for offset, first := range []int{0, 2, 3} {
			text := alphabet.EncodeToString(append(make([]byte, offset), value...))
			forms = append(forms, text[first:(offset+len(value))*8/6])
		}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// Replace replaces the values in all their forms. It returns text itself if text contains no value.
func (v *Values) Replace(text []byte, replacement string) []byte {
	var out []byte
	done := 0
	for at := 0; at < len(text); {
		from, to, _ := v.next(text, at)
		if from < 0 {
			break
		}
		out = append(append(out, text[done:max(from, done)]...), replacement...)
		at, done = to, to
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// FindRemaining returns the name of the variable whose value occurs first in text. It ignores values that match whole
// words only, and returns "" if no other value occurs.
func (v *Values) FindRemaining(text []byte) string {
	for at := 0; at < len(text); {
		from, to, f := v.next(text, at)
		if from < 0 {
			return ""
		}
		if !f.word {
			return f.name
		}
		at = to
	}
	return ""
}

// Clean replaces the values, and any other text that looks like a secret. found reports whether text changed.
func (v *Values) Clean(text []byte) (clean []byte, found bool) {
	var out bytes.Buffer
	for line := range bytes.Lines(v.Replace(text, Redacted)) {
		out.Write(Redact(line))
	}
	return out.Bytes(), !bytes.Equal(out.Bytes(), text)
}

// String applies Clean to one string.
func (v *Values) String(text string) string {
	clean, _ := v.Clean([]byte(text))
	return string(clean)
}

// next finds the first occurrence of a form at or after an offset. If several forms start there, it returns the
// longest. from is -1 if no form occurs.
func (v *Values) next(text []byte, at int) (from, to int, found form) {
	for ; at < len(text); at++ {
		to := -1
		look := func(starts []int) {
			for _, i := range starts {
				f := &v.forms[i]
				if at+1 < len(text) && len(f.text) > 1 && !special[text[at]] && !special[text[at+1]] && f.fold(text[at+1]) != f.text[1] {
					continue // the second character differs
				}
				if end := f.end(text, at, 0); end > to && f.isWord(text, at, end) {
					to, found = end, *f
				}
			}
		}
		look(v.starts[text[at]])
		if special[text[at]] {
			if c, n, _ := decode(text[at:]); n > 0 && c[0] != text[at] {
				look(v.starts[c[0]])
			}
		}
		if to < 0 {
			continue
		}
		from = at
		if found.isBase64 {
			if from > 0 && isBase64Char(text[from-1]) {
				from--
			}
			if to < len(text) && isBase64Char(text[to]) {
				to++
			}
		}
		return from, to, found
	}
	return -1, -1, form{}
}

var special = [256]bool{'%': true, '\\': true, '&': true, '+': true, '\n': true, '\r': true, '\x1b': true}

// escapeBefore matches an escape sequence at the end of text. A word may follow it without a separator.
var escapeBefore = regexp.MustCompile(`(?:\\[bfnrtv]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]*[A-Za-z])$`)

func (f *form) isWord(text []byte, from, to int) bool {
	if !f.word {
		return true
	}
	before := from == 0 || !isAlphanumeric(text[from-1]) || escapeBefore.Match(text[max(0, from-16):from])
	return before && (to == len(text) || !isAlphanumeric(text[to]))
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func isBase64Char(c byte) bool { return isAlphanumeric(c) || strings.IndexByte("+/-_", c) >= 0 }

func (f *form) fold(c byte) byte {
	if f.anyCase && 'A' <= c && c <= 'Z' {
		return c - 'A' + 'a'
	}
	return c
}

func (f *form) continues(done int, c []byte) bool {
	if len(c) == 1 {
		return f.text[done] == f.fold(c[0])
	}
	return strings.HasPrefix(f.text[done:], string(c))
}

// Results of end if there is no occurrence.
const (
	absent     = -1
	unfinished = -2 // the text ends inside a possible occurrence
)

// end returns the end of the occurrence of f.text[done:] that starts at an offset. It returns absent or unfinished if
// text does not contain it. done is the number of bytes of f.text that text has before the offset.
func (f *form) end(text []byte, at, done int) int {
	if done == len(f.text) {
		return at
	}
	if at >= len(text) {
		return unfinished
	}
	result := absent
	if mayContinue(text[at:]) {
		result = unfinished
	}
	follow := func(next, done int) (found bool) {
		if end := f.end(text, next, done); end != absent {
			result = end
		}
		return result >= 0
	}
	if c, n, width := decode(text[at:]); n > 0 && f.continues(done, c[:n]) && follow(at+width, done+n) {
		return result
	}
	if f.text[done] == '\\' { // JSON doubles a backslash at each level
		for next, count := at, 1; count <= 8; count++ {
			width := slash(text[next:])
			if width == 0 {
				break
			}
			next += width
			if follow(next, done+1) {
				return result
			}
		}
	} else if f.fold(text[at]) == f.text[done] && follow(at+1, done+1) {
		return result
	}
	if done == 0 || f.word {
		return result
	}
	if next := skip(text, at); next > at {
		follow(next, done)
	}
	return result
}

// color matches the part of a color sequence after its escape character.
var color = regexp.MustCompile(`^\[[0-9;]{0,16}[A-Za-z]`)

// skip returns the offset after the line breaks and color sequences that start at an offset. They may split a value.
func skip(text []byte, at int) int {
	for range 3 { // CR, LF and a color sequence
		if at >= len(text) {
			break
		}
		c, width := text[at], 1
		if decoded, n, length := decode(text[at:]); n > 0 {
			c, width = decoded[0], length
		}
		switch {
		case c == '\n' || c == '\r':
			at += width
		case c == '\x1b':
			at += width + len(color.Find(text[at+width:min(len(text), at+width+20)]))
		default:
			return at
		}
	}
	return at
}

// Hide replaces tokens in text, such as an error response, with {token}, unless they are shorter than minLengthToken.
// It also replaces the start of a token before "…", which marks shortened text.
func Hide(text string, tokens ...string) string {
	var v Values
	for _, token := range tokens {
		if len(token) >= minLengthToken {
			v.add("", token, false)
		}
	}
	if len(v.forms) == 0 {
		return text
	}
	parts := bytes.Split(v.Replace([]byte(text), "{token}"), []byte("…"))
	for i, part := range parts[:len(parts)-1] {
		if at := v.truncatedStart(part); at < len(part) {
			parts[i] = append(part[:at:at], "{token}"...)
		}
	}
	return string(bytes.Join(parts, []byte("…")))
}

// Error wraps err, and replaces the secrets of the environment in its text, such as a token in a malformed header. It
// returns nil if err is nil.
func Error(err error) error { return withText(err, Environment(os.Environ()).String) }

// HideInError wraps err, and applies Hide to its text. It returns nil if err is nil.
func HideInError(err error, tokens ...string) error {
	return withText(err, func(text string) string { return Hide(text, tokens...) })
}

func withText(err error, replace func(string) string) error {
	if err == nil {
		return nil
	}
	return redactedError{error: err, text: replace(err.Error())}
}

type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.error }
