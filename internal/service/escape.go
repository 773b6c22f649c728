package service

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
)

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

// removeControl is for strings.Map. It removes control characters, which are invalid in a header, except tabs.
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
