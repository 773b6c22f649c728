package eventstream

import (
	"strings"
	"testing"
)

// endless repeats one text, at most one buffer at a time.
type endless struct {
	text string
	at   int
}

func (r *endless) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

func BenchmarkParser(b *testing.B) {
	for name, text := range map[string]string{
		"bare":     "data: 0\n\n",
		"numbered": ": sent=1763683200123456\nid: 1234\ndata: 0\n\n",
		"lines":    "event: stock\r\n" + strings.Repeat("data: 0123456789abcdef\r\n", 8) + "\r\n",
		"700B":     "data: " + strings.Repeat("x", 700) + "\n\n",
		"64KiB":    "data: " + strings.Repeat("x", 64<<10) + "\n\n",
	} {
		b.Run(name, func(b *testing.B) {
			p := New(&endless{text: text})
			var e Event
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := p.Next(&e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
