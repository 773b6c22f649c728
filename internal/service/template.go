package service

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Field is the value of a placeholder.
type Field int

// The fields of placeholders; docs/services.md lists those of each request.
const (
	Base    Field = iota // URL of the service, without a slash at its end
	Topic                // name of the topic
	N                    // number of the stream, from 0
	ID                   // name of the stream, unique in the run
	Run                  // the run's marker
	Seq                  // number of the message in its topic, from 1
	SentAt               // when the message is sent, microseconds since 1970
	Token                // of token(), or PUBLISH_TOKEN for the publisher
	Client               // value from the first block of a stream, for the second request
	Sum                  // checksum of Run, Seq and SentAt
	Padding              // fills a message up to the size that the plan sets; often ""
	Prompt               // text for the request of a finite response
)

var fieldNames = []string{"base", "topic", "n", "id", "run", "seq", "sentAt", "token", "client", "sum", "padding", "prompt"}

// Values are the values of placeholders. They are escaped for their place, so any text is safe there.
type Values struct {
	Base, Topic, ID, Run, Token, Client, Padding, Prompt string
	N, Seq, SentAt                                       int64
}

func (v *Values) text(f Field) string {
	switch f {
	case Base:
		return v.Base
	case Topic:
		return v.Topic
	case ID:
		return v.ID
	case Run:
		return v.Run
	case Token:
		return v.Token
	case Padding:
		return v.Padding
	case Prompt:
		return v.Prompt
	default:
		return v.Client
	}
}

func (f Field) numeric() bool { return f == N || f == Seq || f == SentAt }

func (v *Values) number(f Field) int64 {
	switch f {
	case N:
		return v.N
	case Seq:
		return v.Seq
	default:
		return v.SentAt
	}
}

// A Template is a compiled text with placeholders. The zero value is the empty text.
type Template struct{ parts []part }

// A part is a literal text, or a placeholder if literal is "".
type part struct {
	literal string
	field   Field
	escape  escape
}

// Uses reports whether the template has a placeholder.
func (t Template) Uses(f Field) bool {
	for _, p := range t.parts {
		if p.literal == "" && p.field == f {
			return true
		}
	}
	return false
}

// String returns the text with its placeholders.
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

// Append appends the text, filled and escaped.
func (t Template) Append(dst []byte, v *Values) []byte {
	for i := range t.parts {
		switch p := &t.parts[i]; {
		case p.literal != "":
			dst = append(dst, p.literal...)
		case p.field.numeric():
			dst = strconv.AppendInt(dst, v.number(p.field), 10)
		case p.field == Sum:
			dst = appendSum(dst, v)
		default:
			dst = p.escape.append(dst, v.text(p.field))
		}
	}
	return dst
}

// A language is the language of a template.
type language int

const (
	plain language = iota
	ofHeader
	ofURL
	ofForm
	ofJSON
)

// placeholder matches {name}. In JSON a quote or a closing brace follows an opening one.
var placeholder = regexp.MustCompile(`^\{([A-Za-z][A-Za-z0-9_]*)\}`)

// A compiler compiles one text into a template.
type compiler struct {
	language language
	fields   []Field // of this request
	out      Template
	literal  []byte
	fail     func(format string, args ...any)

	inQuery bool   // after the ? of a URL
	json    bool   // in JSON: the whole text, or one parameter
	quoted  bool   // in a string of that JSON
	sample  []byte // that JSON with examples as values
	place   string // the place of that JSON, for errors
}

// compileTemplate compiles a text. It passes each error to fail, as the end of a sentence.
func compileTemplate(text string, l language, fields []Field, fail func(format string, args ...any)) Template {
	c := compiler{language: l, fields: fields, fail: fail}
	if l == ofForm {
		c.inQuery = true
	}
	if l == ofJSON {
		c.json, c.place = true, "it"
	}
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

// placeholder compiles {name}.
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
		suggestion = ": did you mean {" + suggestion + "}?"
	}
	c.fail("unknown placeholder {%s}%s (known: {%s})", name, suggestion, strings.Join(known, "}, {"))
	c.sample = append(c.sample, '1')
}

func (c *compiler) field(f Field) {
	if c.json && !c.quoted && !f.numeric() {
		c.fail("{%s} is text: in JSON it stands in quotes", fieldNames[f])
	}
	e := escape{url: c.language == ofForm || c.language == ofURL, json: c.json, header: c.language == ofHeader}
	if c.language == ofURL && f == Base && len(c.out.parts) == 0 && len(c.literal) == 0 {
		e = escape{}
	}
	c.flush()
	c.out.parts = append(c.out.parts, part{field: f, escape: e})
	c.sample = append(c.sample, '1')
}

// character compiles the character at text[i].
func (c *compiler) character(text string, i int) {
	ch := text[i]
	if c.language != ofURL && c.language != ofForm {
		if c.language == ofHeader && (ch < ' ' && ch != '\t' || ch == 0x7f) {
			c.fail("a header has no line breaks and no other control characters")
		}
		c.track(text, i)
		c.literal = append(c.literal, ch)
		return
	}
	switch {
	case ch == '&' && c.inQuery:
		c.endJSON()
	case ch == '#' && c.language == ofURL && !c.json:
		c.fail("a URL of a request has no fragment (#); in a value it is %%23")
	case ch == '%' && !hexadecimal(text[i+1:]):
		c.fail("%% is followed by two digits; a percent sign is %%25")
	case ch == '?' && c.language == ofURL && !c.inQuery:
		c.inQuery = true
	case ch == '=' && c.inQuery && !c.json && c.begins(text[i+1:]):
		c.literal = append(c.literal, ch)
		c.json, c.quoted, c.sample, c.place = true, false, nil, "the value behind "+lastName(text[:i])+"="
		return
	}
	c.track(text, i)
	switch {
	case c.json && (ch == '+' || ch == '#'), !allowedInURL(ch):
		c.literal = fmt.Appendf(c.literal, "%%%02X", ch)
	default:
		c.literal = append(c.literal, ch)
	}
}

// begins reports whether a value is JSON: an object or a list.
func (c *compiler) begins(value string) bool {
	return strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") && !placeholder.MatchString(value)
}

// lastName returns the name of the parameter that text ends with.
func lastName(text string) string { return text[1+strings.LastIndexAny(text, "?&"):] }

// track follows quotes in JSON.
func (c *compiler) track(text string, i int) {
	if !c.json {
		return
	}
	if text[i] == '"' && !(c.quoted && c.isEscaped(text[:i])) {
		c.quoted = !c.quoted
	}
	c.sample = append(c.sample, text[i])
}

// endJSON checks the JSON that ends here.
func (c *compiler) endJSON() {
	if !c.json {
		return
	}
	if !validJSON(c.sample) {
		c.fail("with sample values, %s is not JSON", c.place)
	}
	c.json, c.quoted = false, false
}

func hexadecimal(text string) bool {
	for i := range 2 {
		if i >= len(text) || !strings.ContainsRune("0123456789abcdefABCDEF", rune(text[i])) {
			return false
		}
	}
	return true
}
