package service

import (
	"strings"
	"unicode/utf8"
)

// escape says how a text becomes part of another: first in a string of JSON, then in a URL or a form.
type escape struct{ json, url, header bool }

func (e escape) append(dst []byte, text string) []byte {
	if e == (escape{}) {
		return append(dst, text...)
	}
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRuneInString(text[i:])
		switch c := text[i]; {
		case e.header:
			if c >= ' ' && c != 0x7f || c == '\t' {
				dst = append(dst, text[i:i+n]...) // control characters would end the header
			}
		case e.json && (c < ' ' || c == '"' || c == '\\'):
			dst = e.appendEscaped(dst, c)
		default:
			for _, b := range []byte(text[i : i+n]) {
				dst = e.appendByte(dst, b)
			}
		}
		i += n
	}
	return dst
}

const hexDigits = "0123456789ABCDEF"

// appendEscaped writes a character as JSON escapes it.
func (e escape) appendEscaped(dst []byte, c byte) []byte {
	dst = e.appendByte(dst, '\\')
	if c >= ' ' {
		return e.appendByte(dst, c)
	}
	for _, b := range [...]byte{'u', '0', '0', hexDigits[c>>4], hexDigits[c&15]} {
		dst = append(dst, b)
	}
	return dst
}

// appendByte writes a byte as the URL or form has it.
func (e escape) appendByte(dst []byte, b byte) []byte {
	if !e.url || unreserved(b) {
		return append(dst, b)
	}
	return appendHex(dst, b)
}

func appendHex(dst []byte, b byte) []byte { return append(dst, '%', hexDigits[b>>4], hexDigits[b&15]) }

// unreserved is what RFC 3986 lets stand for itself everywhere.
func unreserved(b byte) bool {
	return 'a' <= b|0x20 && b|0x20 <= 'z' || '0' <= b && b <= '9' || b == '-' || b == '.' || b == '_' || b == '~'
}

// allowedInURL is what a URL can have as it is: the author's own ?, & and = among it.
func allowedInURL(b byte) bool {
	return unreserved(b) || b < 0x80 && strings.IndexByte(":/?@!$&'()*+,;=%", b) >= 0
}
