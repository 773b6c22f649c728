package format

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns text with each control and format character (Unicode categories Cc and Cf) written as \uXXXX, so that
// a terminal, an editor or a log viewer does not interpret text from a service. Line feeds, tabs and zero-width joiners stay.
func Escape(text string) string {
	if strings.IndexFunc(text, isInterpreted) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if isInterpreted(r) {
			writeEscape(&out, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// isInterpreted reports whether a terminal may interpret r instead of displaying it.
func isInterpreted(r rune) bool {
	const zeroWidthJoiner = 0x200d
	return r != '\n' && r != '\t' && r != zeroWidthJoiner && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
}

func writeEscape(out *strings.Builder, r rune) {
	if r > 0xffff { // as JSON and JavaScript write it: a surrogate pair
		high, low := 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff
		fmt.Fprintf(out, `\u%04x\u%04x`, high, low)
		return
	}
	fmt.Fprintf(out, `\u%04x`, r)
}

// NewEscaper returns a writer that escapes text as Escape does and writes it to w. It does not change bytes that are
// not UTF-8.
func NewEscaper(w io.Writer) io.Writer { return &escaper{w: w} }

// WithoutEscaper returns the writer below NewEscaper; w itself if it is another writer.
func WithoutEscaper(w io.Writer) io.Writer {
	if e, ok := w.(*escaper); ok {
		return e.w
	}
	return w
}

type escaper struct {
	w          io.Writer
	incomplete []byte // the first bytes of an incomplete character
}

func (e *escaper) Write(p []byte) (int, error) {
	text := append(e.incomplete, p...) //nolint:gocritic // incomplete is replaced below
	end := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if utf8.RuneStart(text[len(text)-n]) {
			if !utf8.FullRune(text[len(text)-n:]) {
				end = len(text) - n
			}
			break
		}
	}
	e.incomplete = append([]byte(nil), text[end:]...)
	if _, err := e.w.Write([]byte(escapeBytes(text[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escapeBytes returns Escape of a text that may not be UTF-8.
func escapeBytes(text []byte) string {
	if utf8.Valid(text) {
		return Escape(string(text))
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1 && text[0] >= 0x80 && text[0] < 0xa0: // C1 control characters of a terminal that does not use UTF-8
			writeEscape(&out, rune(text[0]))
		case r == utf8.RuneError && size == 1:
			out.WriteByte(text[0])
		case isInterpreted(r):
			writeEscape(&out, r)
		default:
			out.Write(text[:size])
		}
		text = text[size:]
	}
	return out.String()
}
