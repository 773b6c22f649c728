package faulty

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parts(chunks ...string) (out []string, rest string) {
	var s splitter
	for _, c := range chunks {
		s.add([]byte(c), func(part []byte) { out = append(out, string(part)) })
	}
	return out, string(s.end())
}

func TestBlocksAndCommentsAreForwardedWhole(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		parts        []string
		rest         string
	}{
		{"blocks", "data: 1\n\ndata: 2\nid: 3\n\n", []string{"data: 1\n\n", "data: 2\nid: 3\n\n"}, ""},
		{"CRLF", "data: 1\r\n\r\nevent: x\r\ndata: 2\r\n\r\n", []string{"data: 1\r\n\r\n", "event: x\r\ndata: 2\r\n\r\n"}, ""},
		{"CR", "data: 1\r\rid: 3\rdata: 2\r\r: ping\r", []string{"data: 1\r\r", "id: 3\rdata: 2\r\r", ": ping\r"}, ""},
		{"a heartbeat without a blank line", ":\n:\nid: 1\ndata: 2\n\n", []string{":\n", ":\n", "id: 1\ndata: 2\n\n"}, ""},
		{"a heartbeat with a blank line", ": ping\r\n\r\ndata: 1\r\n\r\n", []string{": ping\r\n", "\r\n", "data: 1\r\n\r\n"}, ""},
		{"a comment in a block", "data: 1\n: sent=2\n\n", []string{"data: 1\n: sent=2\n\n"}, ""},
		{"cut in a block", "data: 1\n\ndata: 2\nda", []string{"data: 1\n\n"}, "data: 2\nda"},
		{"cut in a line", ":", nil, ":"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, rest := parts(c.stream)
			require.Equal(t, c.parts, got)
			require.Equal(t, c.rest, rest)
			got, rest = parts(strings.Split(c.stream, "")...)
			require.Equal(t, c.parts, got, "byte by byte")
			require.Equal(t, c.rest, rest)
			for i := range c.stream {
				got, _ = parts(c.stream[:i], c.stream[i:])
				require.Equal(t, c.parts, got, "cut at %d", i)
			}
		})
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add("data: 1\r\n\r\n:\n", uint8(3))
	f.Fuzz(func(t *testing.T, stream string, size uint8) {
		var chunks []string
		for rest := stream; rest != ""; {
			n := min(len(rest), int(size)+1)
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		got, rest := parts(chunks...)
		require.Equal(t, stream, strings.Join(got, "")+rest)
		complete, _ := parts(stream)
		require.Equal(t, complete, got)
	})
}
