package shard

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"iter"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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

// writeJSON writes a shard as JSON. It encodes the long lists last, element by element, because all records together
// need as much memory as the streams.
func writeJSON(w io.Writer, s *Shard) error {
	type Fields Shard
	file := struct {
		*Fields
		Connections elements[ledger.Record] `json:"connections"`
		Messages    elements[piece]         `json:"messages,omitzero"`
		Feeds       elements[feedPiece]     `json:"feeds,omitzero"`
	}{Fields: (*Fields)(s), Connections: elements[ledger.Record](s.Records())}
	if s.Published != nil {
		file.Messages = elements[piece](s.Published.pieces())
	}
	if len(s.Feeds) > 0 {
		file.Feeds = elements[feedPiece](s.feedPieces())
	}
	return jsonv2.MarshalWrite(w, &file, LegacyJSON)
}

// elements is a list whose elements are requested one by one.
type elements[T any] iter.Seq[*T]

// MarshalJSONTo encodes each element before it requests the next one.
func (e elements[T]) MarshalJSONTo(out *jsontext.Encoder, options jsonv2.Options) error {
	if err := out.WriteToken(jsontext.ArrayStart); err != nil {
		return err
	}
	for element := range e {
		if err := jsonv2.MarshalEncode(out, element, options); err != nil {
			return err
		}
	}
	return out.WriteToken(jsontext.ArrayEnd)
}
