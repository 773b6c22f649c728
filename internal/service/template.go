package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// A Field identifies the value of a placeholder.
type Field int

// The fields. docs/services.md lists the placeholders of each request.
const (
	Base    Field = iota // URL of the service, without a slash at its end
	Topic                // name of the topic
	N                    // number of the client or of the finite response, from 0
	ID                   // name of the client or of the finite response, unique in the run
	Run                  // marker of the run
	Seq                  // number of the message in its topic, from 1
	SentAt               // time at which the message is sent, in microseconds since 1970
	Token                // return value of token(), or the value of TokenVariable; in publish, PUBLISH_TOKEN
	Client               // value from the event of connect.then, or from an earlier finite response
	Sum                  // checksum of Run, Seq and SentAt
	Padding              // text of the size in the plan, for large messages; often ""
	Prompt               // text for the request of a finite response
)

var fieldNames = []string{"base", "topic", "n", "id", "run", "seq", "sentAt", "token", "client", "sum", "padding", "prompt"}

// Values are the values of placeholders. Templates escape each value for its place, so any text is safe. Only a Base at
// the start of a URL is inserted unchanged.
type Values struct {
	Base, Topic, ID, Run, Token, Client, Padding, Prompt string
	N, Seq, SentAt                                       int64
}

// text returns the value of a field that is neither a number nor the checksum.
func (v *Values) text(f Field) string {
	return [...]string{
		Base: v.Base, Topic: v.Topic, ID: v.ID, Run: v.Run, Token: v.Token, Client: v.Client, Padding: v.Padding, Prompt: v.Prompt,
	}[f]
}

func (v *Values) number(f Field) int64 { return [...]int64{N: v.N, Seq: v.Seq, SentAt: v.SentAt}[f] }

func (f Field) isNumeric() bool { return f == N || f == Seq || f == SentAt }

// A Template is a compiled text with placeholders. The zero value is the empty text.
type Template struct{ parts []part }

type part struct {
	literal string
	field   Field
	escape  escape
}

// Uses reports whether the template has a placeholder for the field.
func (t Template) Uses(f Field) bool {
	for _, p := range t.parts {
		if p.literal == "" && p.field == f {
			return true
		}
	}
	return false
}

// String returns the text with its placeholders as {name}.
func (t Template) String() string {
	var text strings.Builder
	for _, p := range t.parts {
		if p.literal != "" {
			text.WriteString(p.literal)
		} else {
			text.WriteString("{" + fieldNames[p.field] + "}")
		}
	}
	return text.String()
}

// Append appends the text with escaped values in its placeholders.
func (t Template) Append(dst []byte, v *Values) []byte {
	for i := range t.parts {
		switch p := &t.parts[i]; {
		case p.literal != "":
			dst = append(dst, p.literal...)
		case p.field.isNumeric():
			dst = strconv.AppendInt(dst, v.number(p.field), 10)
		case p.field == Sum:
			dst = fmt.Appendf(dst, "%08x", messageSum(markerSum([]byte(v.Run)), v.Seq, v.SentAt))
		default:
			dst = p.escape.append(dst, v.text(p.field))
		}
	}
	return dst
}

type language int

const (
	languageText language = iota
	languageHeader
	languageURL
	languageForm
	languageJSON
)

// placeholder matches {name}. It does not match the opening brace of a JSON object, which no letter can follow.
var placeholder = regexp.MustCompile(`^\{([A-Za-z][A-Za-z0-9_]*)\}`)

var percentEncoded = regexp.MustCompile(`^%[0-9A-Fa-f]{2}`)

type compiler struct {
	language language
	fields   []Field // allowed in this request
	out      Template
	literal  []byte
	fail     func(format string, args ...any)

	inQuery bool   // the position is after the ? of a URL, or in a form
	json    bool   // the position is in JSON: the whole text, or one parameter
	quoted  bool   // the position is in a string of that JSON
	sample  []byte // that JSON with sample values
	place   string // name of that JSON in errors
}

// compileTemplate returns the template of text. It passes each error to fail.
func compileTemplate(text string, l language, fields []Field, fail func(format string, args ...any)) Template {
	c := compiler{language: l, fields: fields, fail: fail, inQuery: l == languageForm, json: l == languageJSON, place: "the text"}
	for i := 0; i < len(text); {
		if found := placeholder.FindString(text[i:]); found != "" && !(c.json && c.quoted && c.isEscaped(text[:i])) {
			c.placeholder(found[1 : len(found)-1])
			i += len(found)
			continue
		}
		c.character(text, i)
		i++
	}
	c.endJSON()
	c.flush()
	return c.out
}

// isEscaped reports whether the text ends within a JSON escape.
func (c *compiler) isEscaped(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

func (c *compiler) flush() {
	if len(c.literal) > 0 {
		c.out.parts = append(c.out.parts, part{literal: string(c.literal)})
		c.literal = nil
	}
}

func (c *compiler) placeholder(name string) {
	known := make([]string, len(c.fields))
	for i, f := range c.fields {
		known[i] = fieldNames[f]
		if known[i] == name {
			c.field(f)
			return
		}
	}
	suggestion := Nearest(name, known)
	if suggestion != "" {
		suggestion = "; did you mean {" + suggestion + "}?"
	}
	c.fail("unknown placeholder {%s}%s (known: {%s})", name, suggestion, strings.Join(known, "}, {"))
	c.sample = append(c.sample, '1')
}

func (c *compiler) field(f Field) {
	if c.json && !c.quoted && !f.isNumeric() {
		c.fail("{%s} is text, so it must be in quotes in JSON", fieldNames[f])
	}
	e := escape{url: c.language == languageForm || c.language == languageURL, json: c.json, header: c.language == languageHeader}
	if c.language == languageURL && f == Base && len(c.out.parts) == 0 && len(c.literal) == 0 {
		e = escape{}
	}
	c.flush()
	c.out.parts = append(c.out.parts, part{field: f, escape: e})
	c.sample = append(c.sample, '1')
}

func (c *compiler) character(text string, i int) {
	ch := text[i]
	if c.language != languageURL && c.language != languageForm {
		if c.language == languageHeader && (ch < ' ' && ch != '\t' || ch == 0x7f) {
			c.fail("control characters, such as line breaks, are not allowed in a header; remove them")
		}
		c.track(text, i)
		c.literal = append(c.literal, ch)
		return
	}
	switch {
	case ch == '&' && c.inQuery:
		c.endJSON()
	case ch == '#' && c.language == languageURL && !c.json:
		c.fail("a fragment (#) is not allowed in the URL of a request; remove it, or write %%23 in a value")
	case ch == '%' && !percentEncoded.MatchString(text[i:]):
		c.fail("%% must be followed by two hexadecimal digits; write %%25 for a percent sign")
	case ch == '?' && c.language == languageURL && !c.inQuery:
		c.inQuery = true
	case ch == '=' && c.inQuery && !c.json && isJSON(text[i+1:]):
		c.literal = append(c.literal, ch)
		c.json, c.quoted, c.sample, c.place = true, false, nil, "the value of "+lastName(text[:i])
		return
	}
	c.track(text, i)
	switch {
	case c.json && (ch == '+' || ch == '#'), !isAllowedInURL(ch):
		c.literal = fmt.Appendf(c.literal, "%%%02X", ch)
	default:
		c.literal = append(c.literal, ch)
	}
}

// isJSON reports whether a value begins like an object or a list, and not with a placeholder.
func isJSON(value string) bool {
	return strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") && !placeholder.MatchString(value)
}

func lastName(text string) string { return text[1+strings.LastIndexAny(text, "?&"):] }

// track adds the character at text[i] to the sample, and records whether it begins or ends a string.
func (c *compiler) track(text string, i int) {
	if !c.json {
		return
	}
	if text[i] == '"' && !(c.quoted && c.isEscaped(text[:i])) {
		c.quoted = !c.quoted
	}
	c.sample = append(c.sample, text[i])
}

// endJSON checks the sample of the JSON that ends at this position, if any.
func (c *compiler) endJSON() {
	if !c.json {
		return
	}
	if !validJSON(c.sample) {
		c.fail("%s is not valid JSON when sample values replace its placeholders", c.place)
	}
	c.json, c.quoted = false, false
}

// An escape is a set of encodings for a value. JSON in a URL or a form needs json and url.
type escape struct{ json, url, header bool }

func (e escape) append(dst []byte, text string) []byte {
	if e.header {
		text = strings.Map(removeControl, text)
	}
	if e.json {
		text = escapeJSON(text)
	}
	if e.url {
		text = strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	}
	return append(dst, text...)
}

// removeControl returns -1, with which strings.Map removes the character, for the control characters that are invalid in
// a header: all except tabs.
func removeControl(c rune) rune {
	if c < ' ' && c != '\t' || c == 0x7f {
		return -1
	}
	return c
}

// escapeJSON returns text as the content of a JSON string, without the quotes.
func escapeJSON(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // encoding a string never fails
	return strings.TrimSuffix(strings.TrimPrefix(out.String(), `"`), "\"\n")
}

// isAllowedInURL reports whether a URL may contain a byte of a template. It accepts delimiters such as ? and &, which
// the author of the template writes where the URL needs them.
func isAllowedInURL(b byte) bool {
	return b < 0x80 && (strings.IndexByte(":/?@!$&'()*+,;=%", b) >= 0 || url.QueryEscape(string(rune(b))) == string(rune(b)))
}
