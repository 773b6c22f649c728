package shard

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/safefile"
)

// An Encoder encodes shards as files. It is not safe for concurrent use. The zero value is ready to use. An Encoder
// reuses the megabyte that compression needs, because an allocation at each checkpoint would raise the memory of the
// runner.
type Encoder struct {
	z    *gzip.Writer
	last int // size of the last file; the next file has a similar size
}

// Encode returns the content of the file of a shard.
func (e *Encoder) Encode(s *Shard) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, e.last+e.last/8))
	if err := e.write(b, s); err != nil {
		return nil, fmt.Errorf("encode the shard of runner %d: %w", s.Runner.Index, err)
	}
	e.last = b.Len()
	return b.Bytes(), nil
}

func (e *Encoder) write(w io.Writer, s *Shard) (err error) {
	if e.z == nil {
		if e.z, err = gzip.NewWriterLevel(w, gzip.BestSpeed); err != nil {
			return err
		}
	}
	e.z.Reset(w)
	defer e.z.Reset(io.Discard) // otherwise e would keep w and the last file
	if err := writeJSON(e.z, s); err != nil {
		return err
	}
	return e.z.Close()
}

// CheckpointInterval returns the time until the next checkpoint: 30 s, or a thousandth of the runner's age if that is
// longer. A checkpoint is the complete shard, which grows. From the ninth hour on, the bytes written per hour are
// constant.
func CheckpointInterval(age time.Duration) time.Duration {
	const (
		minimum = 30 * time.Second
		divisor = 1000
	)
	return max(minimum, age/divisor)
}

// Write writes the file of a shard atomically.
func Write(path string, s *Shard) error {
	return safefile.Write(path, func(w io.Writer) error {
		return new(Encoder).write(w, s)
	})
}

// writeJSON writes a shard as JSON. It writes the long lists last, element by element, because encoding/json would hold
// their whole text in memory.
func writeJSON(w io.Writer, s *Shard) error {
	type plain Shard
	head, err := json.Marshal(struct {
		*plain
		Series      []Bucket        `json:"series,omitempty"`
		Connections []ledger.Record `json:"connections,omitempty"`
	}{plain: (*plain)(s)})
	if err != nil {
		return err
	}
	if _, err := w.Write(head[:len(head)-1]); err != nil {
		return err
	}
	buckets := func(yield func(*Bucket) bool) {
		for i := range s.Series {
			if !yield(&s.Series[i]) {
				return
			}
		}
	}
	if err := writeList(w, "series", buckets); err != nil {
		return err
	}
	if err := writeList(w, "connections", s.Records()); err != nil {
		return err
	}
	if s.Published != nil {
		if err := writeList(w, "messages", s.Published.pieces()); err != nil {
			return err
		}
	}
	if len(s.Feeds) > 0 {
		if err := writeList(w, "feeds", s.feedPieces()); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "}\n")
	return err
}

// writeList writes a list. It encodes each element before it requests the next one, in a shared buffer.
func writeList[T any](w io.Writer, name string, all iter.Seq[*T]) error {
	if _, err := fmt.Fprintf(w, ",%q:[", name); err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	first := true
	for element := range all {
		if !first {
			text.WriteByte(',')
		}
		first = false
		if err := encoder.Encode(element); err != nil {
			return err
		}
		if _, err := w.Write(bytes.TrimSuffix(text.Bytes(), []byte("\n"))); err != nil {
			return err
		}
		text.Reset()
	}
	_, err := io.WriteString(w, "]")
	return err
}
