package eventstream

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reference implements sections 9.2.5 and 9.2.6 of the HTML standard literally, for a complete stream. It returns the
// parts as text, the events, and whether the stream ended inside a line or an event.
func reference(stream string) (parts []string, events []receivedEvent, unfinished bool) {
	stream = strings.TrimPrefix(stream, "\xEF\xBB\xBF")
	stream = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)
	lines := strings.Split(stream, "\n")
	last := lines[len(lines)-1] // the text after the last line end
	lines = lines[:len(lines)-1]

	var data, name, id string
	var comments []string
	var block receivedEvent
	hasLine, hasEventField := false, false
	for _, line := range lines {
		if line == "" { // end of the block
			if hasLine {
				block.ID, block.Name, block.Data = id, name, strings.TrimSuffix(data, "\n")
				block.Comment = strings.Join(comments, "\n")
				parts = append(parts, eventText(block, data != "", comments != nil))
			}
			if data != "" {
				events = append(events, block)
			}
			data, name, comments, block, hasLine, hasEventField = "", "", nil, receivedEvent{}, false, false
			continue
		}
		hasLine, hasEventField = true, hasEventField || isEventField(line)
		field, value, colon := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "" && colon:
			comments = append(comments, value)
			parts = append(parts, ":"+value)
		case field == "event":
			name = value
		case field == "data":
			data += value + "\n"
		case field == "id" && !strings.Contains(value, "\x00"):
			id = value
			block.HasID = true
		case field == "retry" && value != "" && strings.Trim(value, "0123456789") == "":
			const century = 100 * 365 * 24 * time.Hour
			ms, err := strconv.ParseInt(value, 10, 64)
			if err != nil || ms > century.Milliseconds() {
				ms = century.Milliseconds()
			}
			block.Retry, block.HasRetry = time.Duration(ms)*time.Millisecond, true
		}
	}
	return parts, events, hasEventField || last != ""
}

// isEventField reports whether a line is a field of an event, which is incomplete without a blank line.
func isEventField(line string) bool {
	field, value, _ := strings.Cut(line, ":")
	return field == "data" || field == "event" || field == "id" && !strings.Contains(value, "\x00")
}

// A pieceReader returns its text in pieces of 1 to 17 bytes, which sizes determines. Without sizes, it returns the
// whole text at once.
type pieceReader struct {
	text  string
	sizes []byte
	reads int
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	n := len(r.text)
	if len(r.sizes) > 0 {
		n = int(r.sizes[r.reads%len(r.sizes)])%17 + 1
		r.reads++
	}
	n = copy(p, r.text[:min(n, len(r.text))])
	r.text = r.text[n:]
	return n, nil
}

func FuzzParser(f *testing.F) {
	for _, seed := range []string{
		"data: 0\n\n", ": sent=1\r\nid: 1\r\ndata: 0\r\n\r\n", "\xEF\xBB\xBFdata\r\rid\revent: x\r\r", "\xEF\xBB\xBF: x\r\rid\revent: x\r\r",
		"retry: 10\n\nid: a\x00\ndata\ndata\n\n:\n:x\ndata: y\n\nda", "data: " + strings.Repeat("z", 1500) + "\n\n",
		":\n:\r\ndata\n\n", "event: ping\n\n", "id: 1\n\nretry: 5\n\nfoo\n\n: a\ndata: b\n\n:c\n", "id: 1\n:x\n",
	} {
		f.Add(seed, []byte{0, 3, 16})
		f.Add(seed, []byte{})
	}
	f.Fuzz(func(t *testing.T, stream string, sizes []byte) {
		wantParts, want, unfinished := reference(stream)
		wantErr := io.EOF
		if unfinished {
			wantErr = io.ErrUnexpectedEOF
		}
		events, err := parseAll(New(&pieceReader{text: stream, sizes: sizes}))
		require.Equal(t, want, events)
		require.Equal(t, wantErr, err)
		if len(stream) > smallBuffer {
			return // NextPart may drop comments of a longer stream
		}
		all, events, err := parts(New(&pieceReader{text: stream, sizes: sizes}))
		require.Equal(t, wantParts, all)
		require.Equal(t, want, events)
		require.Equal(t, wantErr, err)
	})
}
