package eventstream

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Section 9.2.5 of the HTML standard requires "UTF-8 decode" of the Encoding standard. That decoder replaces each
// maximal subpart of an ill-formed sequence (section 3.9 of the Unicode standard; the cases include its tables 3-8 to
// 3-11).
func TestTextReplacesInvalidUTF8(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                     "",
		"noop":                                 "noop",
		"ça va €100 😀":                         "ça va €100 😀",
		"a\xE2\x82b":                           "a\uFFFDb",                                          // a euro sign without its last byte
		"a\xE2\x82":                            "a\uFFFD",                                           // the same at the end of a value
		"\xF0\x9F\x98\xF0\x9F\x98":             "\uFFFD\uFFFD",                                      // two emojis without their last bytes
		"\x80\xBF\xFF\xFE":                     "\uFFFD\uFFFD\uFFFD\uFFFD",                          // bytes that cannot start a character
		"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41": "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA", // overlong
		"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41": "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA", // surrogates
		"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42": "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB",      // beyond U+10FFFF
		"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41": "\uFFFD\uFFFD\uFFFD\uFFFDA",                         // truncated
		"\xEF\xBB\xBFa":                        "\uFEFFa",                                           // a byte order mark within a stream remains
	} {
		require.Equal(t, want, Text([]byte(in)), "%x", in)
	}
}
