package shard

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/klauspost/compress/gzip"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/safefile"
)

// ReadFile reads the shard at path.
func ReadFile(path string) (*Shard, error) {
	f, err := safefile.Open(path, maxUnpacked)
	if err != nil {
		return nil, fmt.Errorf("read shard: %w", err)
	}
	defer f.Close()
	s, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("read shard %s: %w", path, err)
	}
	return s, nil
}

// Read reads one shard. A truncated file, trailing data, a different version and values that no runner writes
// (bounds.go) are errors. Read uses limited memory for hostile files.
func Read(r io.Reader) (*Shard, error) {
	packed := &byteCounter{source: r}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("not a complete gzip file: %w", err)
	}
	in := &boundedReader{source: z, packed: packed, longest: maxValue}
	in.json = jsontext.NewDecoder(in, LegacyJSON)
	s, err := in.shard()
	var other schemaError
	if errors.As(err, &other) {
		return nil, other
	}
	if err != nil {
		return nil, fmt.Errorf("not a complete shard: %w", err)
	}
	if s.Schema != Schema {
		return nil, schemaError(s.Schema)
	}
	switch _, err := in.json.ReadToken(); { // also checks gzip's checksum
	case err == nil:
		return nil, errors.New("not a complete shard: trailing data")
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("not a complete shard: %w", err)
	}
	return s, s.check()
}

// A schemaError is the version of a shard, and the error of a version other than Schema.
type schemaError int

func (s schemaError) Error() string {
	return fmt.Sprintf("schema must be %d, got %d; merge the shard with the version of soak that wrote it", Schema, int(s))
}

// shard reads the shard. It reads long lists element by element, to limit the memory.
func (in *boundedReader) shard() (*Shard, error) {
	type Fields Shard
	s := new(Shard)
	readers := jsonv2.JoinUnmarshalers(
		readerOf(in, in.schema),
		listReader[Bucket](in, "series", maxBuckets), listReader[ResponseBucket](in, "series", maxBuckets), listReader[Second](in, "seconds", maxSeconds),
		listReader[ScriptCheck](in, "checks", maxChecks), listReader[Metric](in, "metrics", maxMetrics),
		readerOf(in, func(*[]ledger.Record) error { return in.records(s) }), readerOf(in, in.published), readerOf(in, in.reach),
		readerOf(in, func(*[]piece) error { return in.messages(s.Published) }), readerOf(in, func(*[]feedPiece) error { return in.feeds(s) }),
	)
	file := struct {
		*Fields
		Schema   schemaError `json:"schema"` // the first key
		Messages []piece     `json:"messages"`
		Feeds    []feedPiece `json:"feeds"`
	}{Fields: (*Fields)(s)}
	err := jsonv2.UnmarshalDecode(in.json, &file, LegacyJSON, jsonv2.WithUnmarshalers(readers))
	s.Schema = int(file.Schema)
	return s, cmp.Or(in.failure, err) // err has the name of a Go type in addition
}

// readerOf makes read the decoder of all values of a type.
func readerOf[P any](in *boundedReader, read func(P) error) *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFromFunc(func(_ *jsontext.Decoder, out P, _ jsonv2.Options) error {
		err := read(out)
		in.failure = cmp.Or(in.failure, err)
		return err
	})
}

// schema rejects a shard of another version before its fields are decoded.
func (in *boundedReader) schema(s *schemaError) error {
	if err := jsonv2.UnmarshalDecode(in.json, (*int)(s)); err != nil || *s == Schema {
		return err
	}
	return *s
}

func (in *boundedReader) published(p *Published) error {
	*p = Published{}
	err := jsonv2.UnmarshalDecode(in.json, p)
	p.columns = make([]column, min(len(p.Topics), MaxTopics))
	return err
}

// listReader reads long lists of a type. It doubles the capacity, because append would allocate five times the memory
// in total.
func listReader[T any](in *boundedReader, name string, limit int) *jsonv2.Unmarshalers {
	return readerOf(in, func(list *[]T) error {
		*list = nil
		return in.elements(name, limit, func() error {
			if len(*list) == cap(*list) {
				*list = append(make([]T, 0, min(max(2*len(*list), 16), limit)), *list...)
			}
			*list = (*list)[:len(*list)+1]
			return jsonv2.UnmarshalDecode(in.json, &(*list)[len(*list)-1])
		})
	})
}

// elements reads a list. read reads each element; null is an empty list.
func (in *boundedReader) elements(name string, limit int, read func() error) error {
	token, err := in.json.ReadToken()
	if err != nil || token.Kind() == 'n' {
		return err
	}
	if token.Kind() != '[' {
		return fmt.Errorf("%s must be a list", name)
	}
	defer func(start int64, isNested bool) {
		if in.inList = isNested; !isNested {
			in.listBytes += in.json.InputOffset() - start
		}
	}(in.json.InputOffset(), in.inList)
	in.inList = true
	for n := 0; in.json.PeekKind() != ']'; n++ {
		if n >= limit {
			return fmt.Errorf("%s must have at most %d elements", name, limit)
		}
		if err := read(); err != nil {
			return err
		}
	}
	_, err = in.json.ReadToken()
	return err
}

// records reads and packs the records one by one, because a million unpacked records are too large.
func (in *boundedReader) records(s *Shard) error {
	s.packed = &Connections{}
	details, record := 0, new(ledger.Record)
	return in.elements("connections", maxConnections, func() error {
		text, err := in.json.ReadValue()
		if err != nil {
			return err
		}
		if len(text) > maxRecord {
			return fmt.Errorf("the record of a client must have at most %d KiB", maxRecord>>10)
		}
		*record = ledger.Record{}
		if err := jsonv2.Unmarshal(text, record, LegacyJSON); err != nil {
			return err
		}
		if details += len(record.Findings) + len(record.Outages); details > maxFindings {
			return fmt.Errorf("connections must have at most %d findings and outages", maxFindings)
		}
		before := s.packed.bytes
		s.packed.add(0, record)
		if s.packed.bytes-before > len(text)+emptyRecord {
			return errors.New("lists in the record of a client must not have empty elements")
		}
		if s.packed.bytes > maxRecords {
			return fmt.Errorf("connections must have at most %d MiB", maxRecords>>20)
		}
		return nil
	})
}

func (in *boundedReader) messages(p *Published) error {
	if p != nil {
		clear(p.columns) // of an earlier list with the same key
	}
	size := 0
	return in.elements("messages", maxPieces, func() error {
		var part piece
		if err := jsonv2.UnmarshalDecode(in.json, &part); err != nil {
			return err
		}
		if p == nil || part.Topic < 0 || part.Topic >= len(p.columns) {
			return errors.New("messages of an unknown topic")
		}
		if size += len(part.Lags) + len(part.Answers); size > maxColumns {
			return fmt.Errorf("messages must have at most %d MiB", maxColumns>>20)
		}
		c := &p.columns[part.Topic]
		c.lags, c.answers = append(c.lags, part.Lags...), append(c.answers, part.Answers...)
		return nil
	})
}

// reach reads the topics of a Reach one by one. The text of a topic may exceed maxValue.
func (in *boundedReader) reach(r *Reach) error {
	in.longest = maxReach
	defer func() { in.longest = maxValue }()
	*r = Reach{}
	size := 0
	topics := readerOf(in, func(*[][]byte) error {
		r.Topics = nil
		return in.elements("topics", MaxTopics, func() error {
			var topic []byte
			err := jsonv2.UnmarshalDecode(in.json, &topic)
			if size += len(topic); size > maxReach {
				return fmt.Errorf("reach must have at most %d MiB", maxReach>>20)
			}
			r.Topics = append(r.Topics, topic)
			return err
		})
	})
	return jsonv2.UnmarshalDecode(in.json, r, LegacyJSON, jsonv2.WithUnmarshalers(topics))
}

type byteCounter struct {
	source io.Reader
	n      int64
}

func (c *byteCounter) Read(p []byte) (int, error) {
	n, err := c.source.Read(p)
	c.n += int64(n)
	return n, err
}

// A boundedReader reads the unpacked text of a shard within limits.
type boundedReader struct {
	source    io.Reader    // unpacks the file
	packed    *byteCounter // reads the file
	json      *jsontext.Decoder
	n         int64 // number of unpacked bytes
	longest   int64 // maximum bytes of a value
	inList    bool  // a list is being read element by element
	listBytes int64 // number of bytes of the lists so far
	failure   error // the first error of readerOf
}

// LegacyJSON makes version 2 of encoding/json encode and decode like version 1. Version 2 decodes at twice the speed,
// and decoding takes most of the time of a merge. Errors have the text of version 2, because errors of version 1
// require a second parse of each value.
var LegacyJSON = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

// Read fails if the unpacked text, its ratio to the packed bytes, its part outside of lists, or a single value exceeds
// the limit.
func (in *boundedReader) Read(p []byte) (int, error) {
	switch {
	case in.n > maxUnpacked || in.n > packedBase+packedTimes*in.packed.n:
		return 0, fmt.Errorf("the unpacked shard exceeds %d MiB", in.n>>20)
	case in.n-in.json.InputOffset() > in.longest:
		return 0, fmt.Errorf("a value must have at most %d MiB", in.longest>>20)
	case !in.inList && in.n-in.listBytes > maxFields:
		return 0, fmt.Errorf("fields other than lists must have at most %d MiB", maxFields>>20)
	}
	n, err := in.source.Read(p)
	in.n += int64(n)
	return n, err
}
