package format

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns text with each control and format character (Unicode categories Cc and Cf) written as \uXXXX. A
// terminal then does not interpret text from a service. Line feeds, tabs and zero-width joiners stay. Escape does not
// change bytes that are not UTF-8, except 0x80 to 0x9f (C1 control characters).
func Escape(text string) string {
	if isPlain(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1 && text[0] >= 0x80 && text[0] < 0xa0:
			writeEscape(&out, rune(text[0])) // a terminal that does not use UTF-8 interprets C1 control characters
		case isInterpreted(r):
			writeEscape(&out, r)
		default:
			out.WriteString(text[:size])
		}
		text = text[size:]
	}
	return out.String()
}

func isInterpreted(r rune) bool {
	const zeroWidthJoiner = 0x200d
	return r != '\n' && r != '\t' && r != zeroWidthJoiner && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
}

// writeEscape writes r as \uXXXX, or above U+FFFF as the surrogate pair that JSON and JavaScript require.
func writeEscape(out *strings.Builder, r rune) {
	if r > 0xffff {
		high, low := 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff
		fmt.Fprintf(out, `\u%04x\u%04x`, high, low)
		return
	}
	fmt.Fprintf(out, `\u%04x`, r)
}

// NewEscaper returns a writer that escapes text as Escape does and writes it to w. If a Write ends within a character,
// the bytes of this character are written by the next Write.
func NewEscaper(w io.Writer) io.Writer { return &escaper{w: w} }

// WithoutEscaper returns the writer below w if NewEscaper made w, or else w itself.
func WithoutEscaper(w io.Writer) io.Writer {
	if e, ok := w.(*escaper); ok {
		return e.w
	}
	return w
}

type escaper struct {
	w     io.Writer
	start []byte // the first bytes of a character that the next Write completes
}

func (e *escaper) Write(p []byte) (int, error) {
	if len(e.start) == 0 && isPlain(p) {
		return e.w.Write(p)
	}
	text := append(e.start, p...) //nolint:gocritic // start is replaced below
	end := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if utf8.RuneStart(text[len(text)-n]) {
			if !utf8.FullRune(text[len(text)-n:]) {
				end = len(text) - n
			}
			break
		}
	}
	e.start = slices.Clone(text[end:])
	if _, err := e.w.Write([]byte(Escape(string(text[:end])))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// isPlain reports whether text is ASCII without characters to escape. Most output is plain, and a large run writes
// hundreds of MB.
func isPlain[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}
