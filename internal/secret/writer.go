package secret

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

// Memory of a Writer, in bytes.
const (
	longestLine = 256 << 10 // longer lines are cleaned in parts
	context     = 16 << 10  // around the end of such a part: more than any lookalike needs
	cuts        = 64        // positions that are tried for such an end
)

// A Writer writes text without secrets, as Values.Clean returns it, to another writer. The text may be of any length, and a
// secret may be split over several writes: a Writer keeps the end of the text until it is known not to be part of one.
type Writer struct {
	Found bool // whether anything was replaced

	values *Values
	out    io.Writer
	rest   []byte
}

// Writer returns a Writer to out. The caller must close it.
func (v *Values) Writer(out io.Writer) *Writer { return &Writer{values: v, out: out} }

func (w *Writer) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line := bytes.LastIndexByte(w.rest, '\n') + 1
		if line == 0 && len(w.rest) <= longestLine+2*context {
			return len(p), nil
		}
		end, safe := w.values.cut(w.rest, line)
		if end == 0 {
			return len(p), nil
		}
		if err := w.clean(w.rest[:end], safe); err != nil {
			return 0, err
		}
		w.rest = append([]byte(nil), w.rest[end:]...)
	}
}

// Rest returns the end of the text that is not written yet, without secrets.
func (w *Writer) Rest() []byte {
	clean, _ := w.values.Clean(w.rest)
	return clean
}

// Close is Flush. It does not close the other writer.
func (w *Writer) Close() error { return w.Flush() }

// Flush writes the text so far. A secret is not found if it continues in the next write.
func (w *Writer) Flush() error {
	rest := w.rest
	w.rest = nil
	return w.clean(rest, true)
}

func (w *Writer) clean(text []byte, safe bool) error {
	clean, found := w.values.Clean(text)
	if !safe {
		clean, found = []byte(Redacted), true
	}
	w.Found = w.Found || found
	_, err := w.out.Write(clean)
	return err //nolint:wrapcheck // of the caller's writer
}

// LeftIn is Left for a text of any length.
func (v *Values) LeftIn(text io.Reader) (string, error) {
	part := make([]byte, 0, longestLine)
	for {
		n, err := io.ReadFull(text, part[len(part):cap(part)])
		part = part[:len(part)+n]
		if left := v.Left(part); left != "" {
			return left, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "", nil
		}
		if err != nil {
			return "", err //nolint:wrapcheck // of the caller's reader
		}
		part = part[:copy(part, part[len(part)-2*context:])]
	}
}

// cut returns the length of the part of text that can be cleaned without the rest, 0 if there is none. It ends with a line if
// line, the end of the last whole line, is positive. safe is false if a part would be too long: its end may be inside a secret.
func (v *Values) cut(text []byte, line int) (end int, safe bool) {
	open, closed := v.spans(text)
	if line > 0 {
		end := bytes.LastIndexByte(text[:min(line, open+1)], '\n') + 1
		if open < line {
			end = bytes.LastIndexByte(text[:open], '\n') + 1
		}
		for _, span := range slices.Backward(closed) {
			if span[0] < end && end < span[1] {
				end = bytes.LastIndexByte(text[:span[0]], '\n') + 1
			}
		}
		if end > 0 || len(text) <= longestLine+2*context {
			return end, true
		}
	}
	end = min(open, len(text)-context)
	for range cuts {
		if end <= context {
			break
		}
		if v.independent(text[end-context:end], text[end:min(len(text), end+context)]) {
			return end, true
		}
		end -= 997
	}
	return len(text), false
}

// independent reports whether two neighbouring texts have no secret in common.
func (v *Values) independent(a, b []byte) bool {
	cleanA, _ := v.Clean(a)
	cleanB, _ := v.Clean(b)
	both, _ := v.Clean(slices.Concat(a, b))
	return bytes.Equal(both, slices.Concat(cleanA, cleanB))
}

// spans returns the offset of the first secret that may continue behind the text, or the length of the text, and all whole
// secrets before it.
func (v *Values) spans(text []byte) (open int, closed [][2]int) {
	for at := 0; at < len(text); {
		from, to, _ := v.next(text, at)
		if from < 0 {
			return v.unfinished(text, at, len(text)), closed
		}
		if open := v.unfinished(text, at, from); open < from || to == len(text) {
			return open, closed
		}
		closed, at = append(closed, [2]int{from, to}), to
	}
	return len(text), closed
}

// unfinished returns the first offset in text[from:to] at which a secret may start that continues behind the text; to if there
// is none.
func (v *Values) unfinished(text []byte, from, to int) int {
	for at := from; at < to; at++ {
		if v.startsUnfinished(text, at) {
			return at
		}
	}
	return to
}

func (v *Values) startsUnfinished(text []byte, at int) bool {
	if len(v.forms) > 0 && isCutEscape(text[at:]) {
		return true
	}
	starts := v.starts[text[at]]
	if special[text[at]] {
		if c, n, _ := decode(text[at:]); n > 0 && c[0] != text[at] {
			starts = slices.Concat(starts, v.starts[c[0]])
		}
	}
	for _, i := range starts {
		if end := v.forms[i].end(text, at, 0); end == unfinished || end == len(text) {
			return true
		}
	}
	return false
}
