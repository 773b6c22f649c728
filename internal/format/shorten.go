package format

import (
	"strings"
	"unicode"
)

// Shorten returns the start of text as one line of printable characters, at most limit bytes long. Shortened text
// ends with "…" (3 bytes), so limit must be at least 3.
func Shorten(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}
