package secret

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

const (
	longestLine = 256 << 10 // in bytes; longer lines are cleaned in parts
	context     = 16 << 10  // bytes of text before and after the end of a part: longer than any lookalike
	maxTries    = 64        // positions that are tried for the end of a part
)

// longestCharacter is the length in bytes that overlap assumes for each escaped character of a secret.
const longestCharacter = 12

// A Writer removes secrets from text, as Values.Clean does, and writes the text to another writer. It keeps the end of
// the text until no secret can continue in the next write.
type Writer struct {
	Found bool // a secret was replaced

	values        *Values
	out           io.Writer
	rest          []byte // text that is not yet written
	redactedBytes int    // number of bytes at the start of rest whose replacement is already written; a secret may start in them
}

// Writer returns a Writer that writes to out. The caller must close the Writer.
func (v *Values) Writer(out io.Writer) *Writer { return &Writer{values: v, out: out} }

// overlap returns the maximum length in bytes that the Writer assumes for the text of one secret.
func (v *Values) overlap() int {
	longest := 0
	for _, f := range v.forms {
		longest = max(longest, len(f.text))
	}
	return max(2*context, longest*longestCharacter)
}

// Write keeps the last line until it is complete. It also keeps all lines from the first one with a secret that may
// continue in the next write. It writes very long lines in parts. Close writes the kept text.
func (w *Writer) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	overlap := w.values.overlap()
	for {
		line, full := bytes.LastIndexByte(w.rest, '\n')+1, len(w.rest) > longestLine+overlap
		if line == 0 && !full {
			return len(p), nil
		}
		end := w.values.partEnd(w.rest, line, full)
		var err error
		switch {
		case end > 0 && end >= w.redactedBytes:
			err = w.next(end)
		case full:
			err = w.hide(len(w.rest) - overlap)
		default:
			return len(p), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// next writes the first n bytes of rest without secrets. It writes nothing if the replacement of some of these bytes is
// already written.
func (w *Writer) next(n int) error {
	text, inSecret := w.rest[:n], w.redactedBytes > 0
	w.rest, w.redactedBytes = bytes.Clone(w.rest[n:]), 0
	if inSecret {
		return nil
	}
	clean, found := w.values.Clean(text)
	w.Found = w.Found || found
	_, err := w.out.Write(clean)
	return err
}

// hide replaces all of rest with Redacted, and keeps the bytes after the first n to find a secret that starts in them.
// It handles text that cannot be split outside a secret.
func (w *Writer) hide(n int) error {
	first := w.redactedBytes == 0
	w.rest = bytes.Clone(w.rest[n:])
	w.redactedBytes, w.Found = len(w.rest), true
	if !first {
		return nil
	}
	_, err := io.WriteString(w.out, Redacted)
	return err
}

// Rest returns the text that is not yet written, without secrets. It also replaces the start of a secret, if the text
// contains at least minLengthToken bytes of it. It returns nil if the text starts inside a secret that is already
// replaced.
func (w *Writer) Rest() []byte {
	if w.redactedBytes > 0 {
		return nil
	}
	open := w.values.truncatedStart(w.rest)
	clean, _ := w.values.Clean(w.rest[:open])
	if open < len(w.rest) {
		clean = append(clean, Redacted...)
	}
	return clean
}

// Close writes the kept text. It does not close the other writer.
func (w *Writer) Close() error { return w.next(len(w.rest)) }

// FindRemainingIn is like FindRemaining, for text of any length. It returns the error of the reader.
func (v *Values) FindRemainingIn(text io.Reader) (string, error) {
	overlap := v.overlap()
	part := make([]byte, 0, longestLine+overlap)
	for {
		n, err := io.ReadFull(text, part[len(part):cap(part)])
		part = part[:len(part)+n]
		if name := v.FindRemaining(part); name != "" {
			return name, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		part = part[:copy(part, part[len(part)-overlap:])]
	}
}

// partEnd returns the length of the first part of text that can be cleaned without the rest, or 0. line is the end of
// the last complete line, or 0. The part ends inside a line only if full is set and no part can end with a line.
func (v *Values) partEnd(text []byte, line int, full bool) int {
	open, complete := v.spans(text)
	leaveSecret := func(end int) int { // returns the start of the secret around end, or end
		for _, span := range slices.Backward(complete) {
			if span[0] < end && end < span[1] {
				return span[0]
			}
		}
		return end
	}
	if line > 0 {
		end := lineEnd(text, min(line, open))
		for start := leaveSecret(end); start < end; start = leaveSecret(end) {
			end = lineEnd(text, start)
		}
		if end > 0 || !full {
			return end
		}
	}
	end := min(open, len(text)-context)
	for range maxTries {
		end = leaveSecret(end)
		if end <= context {
			break
		}
		if v.areIndependent(text[end-context:end], text[end:min(len(text), end+context)]) {
			return end
		}
		end -= 997
	}
	return 0
}

func lineEnd(text []byte, end int) int { return bytes.LastIndexByte(text[:end], '\n') + 1 }

// areIndependent reports whether no secret extends across the boundary of two neighboring parts of text.
func (v *Values) areIndependent(a, b []byte) bool {
	cleanA, _ := v.Clean(a)
	cleanB, _ := v.Clean(b)
	joined, _ := v.Clean(slices.Concat(a, b))
	return bytes.Equal(joined, slices.Concat(cleanA, cleanB))
}

// spans returns the offset of the first secret that may continue after the end of the text, or the length of the text.
// It also returns [from, to) of all complete secrets before that offset.
func (v *Values) spans(text []byte) (open int, complete [][2]int) {
	for at := 0; at < len(text); {
		from, to, _ := v.next(text, at)
		if from < 0 {
			return v.partialStart(text, at, len(text)), complete
		}
		if open := v.partialStart(text, at, from); open < from || to == len(text) {
			return open, complete
		}
		complete, at = append(complete, [2]int{from, to}), to
	}
	return len(text), complete
}

// partialStart returns the first offset in text[from:to] at which a secret that continues after the text may start. It
// returns to if no secret may start there.
func (v *Values) partialStart(text []byte, from, to int) int {
	for at := from; at < to; at++ {
		if len(v.forms) > 0 && mayContinue(text[at:]) || v.startsForm(text, at) {
			return at
		}
	}
	return to
}

// truncatedStart returns the offset of a secret that the end of the text truncates, or the length of the text. It
// ignores a secret of which the text has less than minLengthToken bytes.
func (v *Values) truncatedStart(text []byte) int {
	for at := range text[:max(0, len(text)-minLengthToken+1)] {
		if v.startsForm(text, at) {
			return at
		}
	}
	return len(text)
}

// startsForm reports whether a form of a value starts at an offset, and ends with the text or may continue after it.
func (v *Values) startsForm(text []byte, at int) bool {
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
