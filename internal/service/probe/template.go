package probe

import (
	"regexp"
	"strings"
)

// A service may copy the text of a published message into a field of an event, where no path leads to the values in it. The probe knows
// the template of the message, so the text around a placeholder locates its value.
var (
	// verbatim matches the parts of a template that no encoding of JSON, HTML or a form changes.
	verbatim    = regexp.MustCompile(`[ !#$'()*,./0-9:;=?@A-Z\[\]^_` + "`" + `a-z{|}~-]+`)
	placeholder = regexp.MustCompile(`\{(run|seq|sentAt|sum)\}`)
	wordStart   = regexp.MustCompile(`^\w`)
)

// valuePatterns match the values of placeholders.
var valuePatterns = map[string]string{"run": "[A-Za-z0-9._-]+", "seq": "[0-9]+", "sentAt": "[0-9]+", "sum": "[0-9a-f]{8}"}

// templateSources returns the places of a value by the text around its placeholder in the published message, as a
// description writes them: by the text before it, or else by the text after it.
func (s *session) templateSources(name string) (out []string) {
	_, query, _ := strings.Cut(s.Publish.URL, "?")
	for _, text := range append(verbatim.FindAllString(s.Publish.Body, -1), strings.Split(query, "&")...) {
		start, fullText, has := 0, "", false
		for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
			before, found := text[start:at[0]], text[at[2]:at[3]]
			value := valuePatterns[found]
			if found == name {
				value, has = "("+value+")", true
				if near := strings.TrimSpace(before); wordStart.MatchString(near) {
					out = append(out, `data:\b`+regexp.QuoteMeta(near)+value)
				}
			}
			fullText += regexp.QuoteMeta(before) + value
			start = at[1]
		}
		if has {
			out = append(out, "data:"+fullText)
		}
	}
	return out
}
