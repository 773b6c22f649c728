package eventstream

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
)

// Text decodes bytes of an event according to section 9.2.5 of the HTML standard ("UTF-8 decode"). Each maximal subpart
// of an ill-formed sequence becomes one U+FFFD, as in browsers. Go's own conversions would replace each byte of the
// sequence.
func Text(b []byte) string {
	if !utf8.Valid(b) {
		b, _ = unicode.UTF8.NewDecoder().Bytes(b) // replaces ill-formed sequences and returns no error
	}
	return string(b)
}
