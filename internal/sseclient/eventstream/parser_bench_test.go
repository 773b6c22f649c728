package eventstream

import (
	"strings"
	"testing"
)

// An endlessReader repeats a text, at most maxBytes per read if maxBytes is positive.
type endlessReader struct {
	text     string
	at       int
	maxBytes int
}

func (r *endlessReader) Read(p []byte) (int, error) {
	if r.maxBytes > 0 && len(p) > r.maxBytes {
		p = p[:r.maxBytes]
	}
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

func BenchmarkParser(b *testing.B) {
	for name, text := range map[string]string{
		"bare":     "data: 0\n\n",
		"numbered": ": sent=1763683200123456\nid: 1234\ndata: 0\n\n",
		"json":     "id: 1763683200:0\ndata: {\"run\":\"a1b2c3d4\",\"seq\":123456,\"t\":1763683200123456,\"pad\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}\n\n",
		"ping":     "event: ping\n\n",
		"colon":    ":\n",
		"lines":    "event: stock\r\n" + strings.Repeat("data: 0123456789abcdef\r\n", 8) + "\r\n",
		"700B":     "data: " + strings.Repeat("x", 700) + "\n\n",
		"40KiB":    "data: " + strings.Repeat("x", 40<<10) + "\n\n",
		"64KiB":    "data: " + strings.Repeat("x", 64<<10) + "\n\n",
		"200KiB":   "data: " + strings.Repeat("x", 200<<10) + "\n\n",
	} {
		b.Run(name, func(b *testing.B) {
			p := New(&endlessReader{text: text})
			var block Block
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := p.NextPart(&block); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStreams measures large events of many streams that arrive in pieces, as a poller reads them.
func BenchmarkStreams(b *testing.B) {
	for name, size := range map[string]int{"40KiB": 40 << 10, "64KiB": 64 << 10} {
		b.Run(name, func(b *testing.B) {
			text := "data: " + strings.Repeat("x", size) + "\n\n"
			var parsers [64]Parser
			for i := range parsers {
				parsers[i].Reset(&endlessReader{text: text, maxBytes: 4 << 10}, DefaultLimit)
			}
			var e Event
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for i := 0; b.Loop(); i++ {
				if err := parsers[i%len(parsers)].Next(&e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
