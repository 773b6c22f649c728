package probe

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/sse-soak/sse-soak/internal/format"
)

// An object has the fields of an object in a description, in the order of the module.
type object []field

type field struct {
	name  string
	value any // string, number, bool, []any or object
	notes []string
}

func (o *object) add(name string, value any, notes ...string) {
	*o = append(*o, field{name, value, notes})
}

func (o object) value(name string) any {
	for _, f := range o {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

func (o object) contains(text string) bool { return strings.Contains(string(toJSON(o)), text) }

// MarshalJSON returns a description as service.Parse reads it.
func (o object) MarshalJSON() ([]byte, error) {
	parts := make([]string, len(o))
	for i, f := range o {
		parts[i] = string(toJSON(f.name)) + ":" + string(toJSON(f.value))
	}
	return []byte("{" + strings.Join(parts, ",") + "}"), nil
}

func toJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%T in a description", v)) // descriptions consist of the types of field.value
	}
	return text
}

// lineWidth is the length in bytes at which the module breaks lines.
const lineWidth = 110

// toModule returns the description as a JavaScript module that begins with the sentences of head as a comment. The
// module does not refer to type declarations, because its folder may have none.
func toModule(o object, head []string) string {
	var out strings.Builder
	writeComment(&out, "", head)
	out.WriteString("\nexport default {\n")
	writeMembers(&out, o, "  ")
	out.WriteString("};\n")
	return out.String()
}

func writeMembers(out *strings.Builder, o object, indent string) {
	for _, f := range o {
		writeComment(out, indent, f.notes)
		inner, nested := f.value.(object)
		line := indent + key(f.name) + ": " + literal(f.value) + ","
		if !nested || !hasNotes(inner) && len(line) <= lineWidth {
			out.WriteString(line + "\n")
			continue
		}
		out.WriteString(indent + key(f.name) + ": {\n")
		writeMembers(out, inner, indent+"  ")
		out.WriteString(indent + "},\n")
	}
}

func hasNotes(o object) bool {
	for _, f := range o {
		inner, _ := f.value.(object)
		if len(f.notes) > 0 || hasNotes(inner) {
			return true
		}
	}
	return false
}

func literal(v any) string {
	switch v := v.(type) {
	case string:
		return quoteJS(v)
	case object:
		parts := make([]string, len(v))
		for i, f := range v {
			parts[i] = key(f.name) + ": " + literal(f.value)
		}
		if len(parts) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = literal(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

var plainKey = regexp.MustCompile(`^[A-Za-z_]\w*$`)

func key(name string) string {
	if plainKey.MatchString(name) {
		return name
	}
	return quoteJS(name)
}

func quoteJS(text string) string {
	var out strings.Builder
	out.WriteByte('\'')
	for _, c := range text {
		switch {
		case c == '\'' || c == '\\':
			out.WriteString(`\` + string(c))
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\t' || c == 0x2028 || c == 0x2029:
			fmt.Fprintf(&out, `\u%04x`, c)
		default:
			out.WriteString(format.Escape(string(c)))
		}
	}
	out.WriteByte('\'')
	return out.String()
}

// writeComment writes sentences as line comments. It replaces line breaks, control characters and format characters
// with spaces, because sentences may quote the service.
func writeComment(out *strings.Builder, indent string, sentences []string) {
	for _, sentence := range sentences {
		prefix := "// "
		line := indent + prefix
		for _, w := range strings.FieldsFunc(sentence, func(c rune) bool {
			return c == 0x2028 || c == 0x2029 || unicode.IsSpace(c) || unicode.IsControl(c) || unicode.Is(unicode.Cf, c)
		}) {
			if len(line) > len(indent)+len(prefix) && len(line)+1+len(w) > lineWidth {
				out.WriteString(line + "\n")
				line = indent + "//  "
			}
			if !strings.HasSuffix(line, " ") {
				line += " "
			}
			line += w
		}
		out.WriteString(line + "\n")
	}
}
