package secret

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

var escapeLetters = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', 'e': '\x1b'}

// longestEscape is the maximum number of bytes of backslashes or percent signs in one escape. Without this limit, a
// long series of them would need quadratic time. JSON in JSON doubles backslashes at each level: 64 bytes suffice for
// six levels.
const longestEscape = 64

// decode decodes the escape at the start of text, which must not be empty. c[:n] is a character in UTF-8 or, for %C3
// and \xC3, one byte of a character. n is 0 if there is no escape; width is the length of the escape. Backslashes and
// percent signs may themselves be escaped, as in JSON in JSON and in URLs in URLs.
func decode(text []byte) (c [utf8.UTFMax]byte, n, width int) {
	switch text[0] {
	case '%':
		if slash(text) > 0 {
			if c, n, width := backslash(text); n > 0 {
				return c, n, width
			}
		}
		if code, width := percent(text); width > 0 {
			return oneByte(code, width)
		}
	case '\\':
		return backslash(text)
	case '&':
		return entity(text)
	case '+':
		return oneByte(' ', 1)
	}
	return c, 0, 0
}

func oneByte(b byte, width int) (c [utf8.UTFMax]byte, n, _ int) {
	c[0] = b
	return c, 1, width
}

func oneRune(r rune, width int) (c [utf8.UTFMax]byte, n, _ int) {
	return c, utf8.EncodeRune(c[:], r), width
}

// percent returns the byte of the percent escape at the start of text, and the length of the escape. Without an escape
// the length is 0.
func percent(text []byte) (code byte, width int) {
	if len(text) < 3 || text[0] != '%' {
		return 0, 0
	}
	at := 1
	for at < longestEscape && bytes.HasPrefix(text[at:], []byte("25")) && isHex(text[at+2:min(len(text), at+4)]) {
		at += 2
	}
	value, ok := number(text[at:], 2, 16)
	if !ok {
		return 0, 0
	}
	return byte(value), at + 2 // #nosec G115 -- two hexadecimal digits
}

// slash returns the length of the plain or percent-encoded backslash at the start of text, or 0 if text starts
// differently.
func slash(text []byte) int {
	if len(text) > 0 && text[0] == '\\' {
		return 1
	}
	if code, width := percent(text); code == '\\' {
		return width
	}
	return 0
}

// backslash decodes an escape that starts with a backslash, which may itself be escaped or percent-encoded.
func backslash(text []byte) (c [utf8.UTFMax]byte, n, width int) {
	at := 0
	for length := slash(text); length > 0 && at < longestEscape; length = slash(text[at:]) {
		at += length
	}
	if at == len(text) || at >= longestEscape {
		return c, 0, 0
	}
	switch letter := text[at]; {
	case letter == 'u':
		code, ok := number(text[at+1:], 4, 16)
		if !ok {
			break
		}
		if r := rune(code); !utf16.IsSurrogate(r) { // #nosec G115 -- four hexadecimal digits
			return oneRune(r, at+5)
		}
		rest, quoted := bytes.CutPrefix(text[at+5:], text[:at+1])
		low, ok := number(rest, 4, 16)
		if r := utf16.DecodeRune(rune(code), rune(low)); quoted && ok && r != utf8.RuneError { // #nosec G115 -- four hexadecimal digits each
			return oneRune(r, 2*(at+5))
		}
	case letter == 'x':
		if code, ok := number(text[at+1:], 2, 16); ok {
			return oneByte(byte(code), at+3) // #nosec G115 -- two hexadecimal digits
		}
	case escapeLetters[letter] != 0:
		return oneByte(escapeLetters[letter], at+1)
	case letter == '%':
		if code, length := percent(text[at:]); length > 0 {
			return oneByte(code, at+length)
		}
	case !isAlphanumeric(letter) && letter < utf8.RuneSelf: // \" and \/
		return oneByte(letter, at+1)
	}
	return c, 0, 0
}

func entity(text []byte) (c [utf8.UTFMax]byte, n, width int) {
	const longest = 10
	encoded, _, found := strings.Cut(string(text[:min(len(text), longest)]), ";")
	decoded := html.UnescapeString(encoded + ";")
	r, size := utf8.DecodeRuneInString(decoded)
	if !found || size != len(decoded) {
		return c, 0, 0
	}
	return oneRune(r, len(encoded)+1)
}

// mayContinue reports whether text may be the beginning of an escape or a color sequence whose rest is missing.
func mayContinue(text []byte) bool {
	if len(text) > longestEscape || strings.IndexByte(`%\&`+"\x1b", text[0]) < 0 {
		return false
	}
	for _, c := range text[1:] {
		if !isAlphanumeric(c) && strings.IndexByte(`%\#[;`, c) < 0 {
			return false
		}
	}
	return true
}

func isHex(text []byte) bool {
	_, ok := number(text, 2, 16)
	return ok
}

// number parses the first bytes of text as an unsigned number with the given count of digits.
func number(text []byte, digits, base int) (uint64, bool) {
	if digits == 0 || len(text) < digits {
		return 0, false
	}
	value, err := strconv.ParseUint(string(text[:digits]), base, 32)
	return value, err == nil
}
