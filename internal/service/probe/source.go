package probe

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/sse-soak/sse-soak/internal/service"
)

const maxSources = 300

// sources returns the places of a block that may contain a value, the most likely first.
func sources(b service.Block) (out []string) {
	if b.HasData {
		walk(jsonOf(b.Data), "json:$", 0, func(path string, value any) {
			if _, isBool := value.(bool); !isBool {
				out = append(out, path)
			}
		})
		if len(out) == 0 {
			out = append(out, textSources("data", string(b.Data))...)
		}
	}
	if b.HasID {
		out = append(out, "id")
		out = append(out, textSources("id", string(b.ID))...)
	}
	if b.HasComment {
		out = append(out, textSources("comment", string(b.Comment))...)
	}
	if b.HasData {
		out = append(out, "data")
	}
	return out[:min(len(out), maxSources)]
}

// identifier matches a name that follows a dot in a path.
var identifier = regexp.MustCompile(`^[^.\[\]'" *]+$`)

func jsonOf(data []byte) (payload any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&payload); err != nil || d.More() {
		return nil
	}
	switch payload.(type) {
	case map[string]any, []any:
		return payload
	}
	return nil
}

// walk calls leaf with the path of each text, number and boolean in an object or a list. It visits the direct values of
// an object or a list before its nested objects and lists. It ignores items after the 20th of a list, values that are
// nested too deeply, and members whose names a path cannot express.
func walk(v any, path string, depth int, leaf func(path string, value any)) {
	const maxDepth = 10
	if depth > maxDepth {
		return
	}
	type child struct {
		path string
		v    any
	}
	var children []child
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			switch {
			case identifier.MatchString(name):
				children = append(children, child{path + "." + name, member})
			case !strings.ContainsAny(name, "']*"):
				children = append(children, child{path + "['" + name + "']", member})
			}
		}
		sort.Slice(children, func(i, j int) bool { return children[i].path < children[j].path })
	case []any:
		for i, item := range v[:min(len(v), 20)] {
			children = append(children, child{path + "[" + strconv.Itoa(i) + "]", item})
		}
	}
	for _, c := range children {
		switch c.v.(type) {
		case string, json.Number, bool:
			leaf(c.path, c.v)
		}
	}
	for _, c := range children {
		switch c.v.(type) {
		case map[string]any, []any:
			walk(c.v, c.path, depth+1, leaf)
		}
	}
}

// wordOrNumber matches letters, digits, dots, hyphens and underscores with at least one digit.
var wordOrNumber = regexp.MustCompile(`[A-Za-z0-9_.-]*[0-9][A-Za-z0-9_.-]*`)

var digits = regexp.MustCompile(`[0-9]+`)

// timeOfDay matches a time such as 09:41:07. Its seconds may grow by one with each message, but are not a sequence.
var timeOfDay = regexp.MustCompile(`[0-9]{1,2}:[0-5][0-9]:[0-5][0-9]`)

// textSources returns the places of numbers, and of words with at least one digit, in the first 200 bytes of text. A
// place is a regular expression that also matches the text before the value. Parts of a time of day are omitted.
func textSources(field, text string) (out []string) {
	const longest = 200
	if len(text) > longest {
		text = text[:longest]
	}
	times := timeOfDay.FindAllStringIndex(text, -1)
	for _, at := range digits.FindAllStringIndex(text, -1) {
		if slices.ContainsFunc(times, func(time []int) bool { return time[0] <= at[0] && at[1] <= time[1] }) {
			continue
		}
		out = append(out, field+":"+prefixPattern(text[:at[0]])+"([0-9]+)"+suffixPattern(text[at[1]:]))
	}
	for _, at := range wordOrNumber.FindAllStringIndex(text, -1) {
		if digits.FindString(text[at[0]:at[1]]) != text[at[0]:at[1]] {
			out = append(out, field+":"+prefixPattern(text[:at[0]])+"([A-Za-z0-9_.-]+)"+suffixPattern(text[at[1]:]))
		}
	}
	return out
}

// prefixPattern returns a pattern for the text before a value, in which numbers and words may differ. A word directly
// before the value ends with the same character as in the text, so that its pattern includes no digit of the value.
func prefixPattern(text string) string {
	var out strings.Builder
	out.WriteString("^")
	rest := 0
	for _, at := range wordOrNumber.FindAllStringIndex(text, -1) {
		out.WriteString(regexp.QuoteMeta(text[rest:at[0]]))
		rest = at[1]
		if rest == len(text) {
			rest--
		}
		class := "[A-Za-z0-9_.-]+"
		if digits.FindString(text[at[0]:rest]) == text[at[0]:rest] {
			class = "[0-9]+"
		}
		out.WriteString(class)
	}
	out.WriteString(regexp.QuoteMeta(text[rest:]))
	return out.String()
}

func suffixPattern(text string) string {
	if text == "" {
		return "$"
	}
	return ""
}

// A reader reads a number, or a time in microseconds, from a block with the code that a run uses.
type reader func(b *service.Block) (int64, bool)

// compile returns the service of a description with these fields, or nil if a field is invalid.
func compile(connect object, message any, fields ...field) *service.Service {
	o := object{{name: "name", value: "x"}, {name: "connect", value: connect}, {name: "message", value: message}}
	s, err := service.Parse(toJSON(append(o, fields...)))
	if err != nil {
		return nil
	}
	return s
}

var anyURL = object{{name: "url", value: "{base}"}}

// seqReader returns a reader of message.seq at a place, or nil if the place is invalid.
func seqReader(source string) reader {
	return readerOf(object{{name: "seq", value: source}}, func(r service.Reading) (int64, bool) { return r.Seq, r.HasSeq && r.Err == nil })
}

// timeReader returns a reader of message.sentAt at a place, or nil if the place is invalid.
func timeReader(source string) reader {
	message := object{{name: "sentAt", value: source}, {name: "every", value: 1}}
	return readerOf(message, func(r service.Reading) (int64, bool) { return r.SentAt, r.HasSentAt })
}

func readerOf(message object, valueOf func(service.Reading) (int64, bool)) reader {
	s := compile(anyURL, message)
	if s == nil {
		return nil
	}
	r := s.Reader("")
	return func(b *service.Block) (int64, bool) { return valueOf(r.Read(b)) }
}

func allDelivered(s *service.Service, marker string, arrivals []*unit) bool {
	if s == nil {
		return false
	}
	r := s.Reader(marker)
	return !slices.ContainsFunc(arrivals, func(u *unit) bool {
		reading := r.Read(&u.Block)
		return reading.Kind != service.Delivery || reading.Err != nil
	})
}

// A service may copy the text of a published message into a field of an event. No JSON path leads to a value within a
// text. The text around the placeholder in the template then locates the value.
var (
	// verbatimText matches the parts of a template that remain unchanged in JSON, HTML and forms.
	verbatimText = regexp.MustCompile(`[ !#$'()*,./0-9:;=?@A-Z\[\]^_` + "`" + `a-z{|}~-]+`)
	placeholder  = regexp.MustCompile(`\{(run|seq|sentAt|sum)\}`)
	wordStart    = regexp.MustCompile(`^\w`)
	lastWord     = regexp.MustCompile(`\w+\W*$`)
)

var valuePatterns = map[string]string{"run": "[A-Za-z0-9._-]+", "seq": "[0-9]+", "sentAt": "[0-9]+", "sum": "[0-9a-f]{8}"}

// templateSources returns the places of a value, in the syntax of a description. It derives them from the text around
// the placeholder in the body and in the URL parameters of the publish request. A place that matches only the text
// before the placeholder precedes the place that matches the whole text.
func (s *session) templateSources(name string) (out []string) {
	_, query, _ := strings.Cut(s.Publish.URL, "?")
	for _, text := range append(verbatimText.FindAllString(s.Publish.Body, -1), strings.Split(query, "&")...) {
		start, fullText, hasValue := 0, "", false
		for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
			prefix, kind := text[start:at[0]], text[at[2]:at[3]]
			value := valuePatterns[kind]
			if kind == name {
				value, hasValue = "("+value+")", true
				trimmed := strings.TrimSpace(prefix)
				// The name of a form field may precede the word.
				for _, word := range slices.Compact([]string{trimmed, lastWord.FindString(trimmed)}) {
					if wordStart.MatchString(word) {
						out = append(out, `data:\b`+regexp.QuoteMeta(word)+value)
					}
				}
			}
			fullText += regexp.QuoteMeta(prefix) + value
			start = at[1]
		}
		if hasValue {
			out = append(out, "data:"+fullText)
		}
	}
	return out
}
