package probe

import (
	"regexp"
	"slices"
	"strings"
)

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
			before, found := text[start:at[0]], text[at[2]:at[3]]
			value := valuePatterns[found]
			if found == name {
				value, hasValue = "("+value+")", true
				trimmed := strings.TrimSpace(before)
				for _, near := range slices.Compact([]string{trimmed, lastWord.FindString(trimmed)}) { // the name of a form field may precede the word
					if wordStart.MatchString(near) {
						out = append(out, `data:\b`+regexp.QuoteMeta(near)+value)
					}
				}
			}
			fullText += regexp.QuoteMeta(before) + value
			start = at[1]
		}
		if hasValue {
			out = append(out, "data:"+fullText)
		}
	}
	return out
}
