package eventstream

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
)

// Text decodes a part of an event, all of which are bytes as they came, as section 9.2.5 has it ("UTF-8 decode"): each
// maximal subpart of an ill-formed sequence becomes one U+FFFD, as in browsers. Go's own conversions make one of each byte.
func Text(b []byte) string {
	if !utf8.Valid(b) {
		b, _ = unicode.UTF8.NewDecoder().Bytes(b) // replaces what is wrong, and has no error
	}
	return string(b)
}
