package shard

import (
	"bytes"
	"encoding/json"
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

// Read reads one shard. A truncated file, trailing data and another version are errors. It does not trust the file:
// values that no runner writes (bounds.go) are errors, too, and cost limited memory.
func Read(r io.Reader) (*Shard, error) {
	packed := &counter{from: r}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("not a whole gzip file: %w", err)
	}
	in := newBoundedReader(z, packed)
	s, err := in.shard()
	var other schemaError
	if errors.As(err, &other) {
		return nil, other
	}
	if err != nil {
		return nil, fmt.Errorf("not a whole shard: %w", err)
	}
	if s.Schema != Schema {
		return nil, schemaError(s.Schema)
	}
	if _, err := in.json.ReadToken(); !errors.Is(err, io.EOF) { // also checks gzip's checksum
		return nil, fmt.Errorf("not a whole shard: %w", orTrailing(err))
	}
	return s, s.check()
}

// A schemaError is the schema of a shard of another version.
type schemaError int

func (s schemaError) Error() string {
	return fmt.Sprintf("it has schema %d, this version reads schema %d; merge it with the version of soak that wrote it", int(s), Schema)
}

func orTrailing(err error) error {
	if err == nil {
		return errors.New("something follows its end")
	}
	return err
}

// shard reads the object: its long lists element by element, so that they are bounded while they are read, and the rest at once.
func (in *boundedReader) shard() (*Shard, error) {
	var s Shard
	first, err := in.json.ReadToken()
	if err != nil || first.Kind() == 'n' {
		return &s, err
	}
	if first.Kind() != '{' {
		return nil, errors.New("it is no JSON object")
	}
	rest := bytes.NewBufferString("{")
	if err := in.members("it", func(key string) error { return in.value(&s, key, rest) }); err != nil {
		return nil, err
	}
	rest.WriteByte('}')
	type plain Shard // without the lists, which are read
	return &s, json.Unmarshal(rest.Bytes(), (*plain)(&s))
}

// members reads the rest of an object. read reads the value of each key, which must be unique.
func (in *boundedReader) members(object string, read func(key string) error) error {
	seen := map[string]bool{}
	for in.json.PeekKind() != '}' {
		token, err := in.json.ReadToken()
		if err != nil {
			return err
		}
		key := token.String()
		if seen[key] || len(seen) > maxKeys {
			return fmt.Errorf("%s says %.40q twice, or too much", object, key)
		}
		seen[key] = true
		if err := read(key); err != nil {
			return err
		}
	}
	_, err := in.json.ReadToken()
	return err
}

func (in *boundedReader) value(s *Shard, key string, rest *bytes.Buffer) error {
	if key != "schema" && s.Schema != Schema { // it is the first key
		return schemaError(s.Schema)
	}
	switch key {
	case "schema":
		return jsonv2.UnmarshalDecode(in.json, &s.Schema)
	case "series":
		return list(in, key, maxBuckets, &s.Series)
	case "seconds":
		return list(in, key, maxSeconds, &s.Seconds)
	case "checks":
		return list(in, key, maxChecks, &s.Checks)
	case "metrics":
		return list(in, key, maxMetrics, &s.Metrics)
	case "connections":
		return in.records(s)
	case "published":
		err := jsonv2.UnmarshalDecode(in.json, &s.Published)
		if p := s.Published; err == nil && p != nil {
			p.sent = make([]column, min(len(p.Topics), MaxTopics))
		}
		return err
	case "messages":
		return in.messages(s.Published)
	case "feeds":
		return in.feeds(s)
	}
	return in.keep(key, rest)
}

// keep adds a raw value to an object that is decoded at the end.
func (in *boundedReader) keep(key string, rest *bytes.Buffer) error {
	raw, err := in.json.ReadValue()
	if err != nil {
		return err
	}
	name, err := json.Marshal(key)
	if err != nil {
		return err
	}
	if rest.Len() > 1 {
		rest.WriteByte(',')
	}
	rest.Write(name)
	rest.WriteByte(':')
	rest.Write(raw)
	if rest.Len() > maxValue {
		return fmt.Errorf("it holds over %d MiB without its lists", maxValue>>20)
	}
	return nil
}

// list reads one of the long lists. It doubles the capacity each time: append grows by a quarter, which allocates five times the
// memory of a long list in all.
func list[T any](in *boundedReader, name string, most int, to *[]T) error {
	return in.elements(name, most, func() error {
		if len(*to) == cap(*to) {
			*to = append(make([]T, 0, min(max(2*len(*to), 16), most)), *to...)
		}
		*to = (*to)[:len(*to)+1]
		return jsonv2.UnmarshalDecode(in.json, &(*to)[len(*to)-1])
	})
}

// elements reads a list. read reads each element; null is an empty list.
func (in *boundedReader) elements(name string, most int, read func() error) error {
	token, err := in.json.ReadToken()
	if err != nil || token.Kind() == 'n' {
		return err
	}
	if token.Kind() != '[' {
		return fmt.Errorf("its %s are no list", name)
	}
	for n := 0; in.json.PeekKind() != ']'; n++ {
		if n >= most {
			return fmt.Errorf("it holds over %d %s", most, name)
		}
		if err := read(); err != nil {
			return err
		}
	}
	_, err = in.json.ReadToken()
	return err
}

// records reads the connections. It packs each before it reads the next: a million records of 650 bytes would be too large.
func (in *boundedReader) records(s *Shard) error {
	s.packed = &Connections{}
	details, one := 0, make([]ledger.Record, 1)
	return in.elements("connections", maxConnections, func() error {
		text, err := in.json.ReadValue()
		if err != nil {
			return err
		}
		if len(text) > maxRecord {
			return fmt.Errorf("it holds a connection of over %d KiB", maxRecord>>10)
		}
		one[0] = ledger.Record{}
		if err := jsonv2.Unmarshal(text, &one[0], legacyJSON); err != nil {
			return err
		}
		if details += len(one[0].Findings) + len(one[0].Outages); details > maxFindings {
			return fmt.Errorf("it holds over %d findings and outages", maxFindings)
		}
		before := s.packed.bytes
		s.packed.add(0, one)
		if s.packed.bytes-before > len(text)+emptyRecord {
			return errors.New("it holds a connection whose lists have empty elements")
		}
		if s.packed.bytes > maxRecords {
			return fmt.Errorf("its connections need over %d MiB", maxRecords>>20)
		}
		return nil
	})
}

// messages reads the columns of the publisher.
func (in *boundedReader) messages(p *Published) error {
	size := 0
	return in.elements("messages", maxPieces, func() error {
		var part piece
		if err := jsonv2.UnmarshalDecode(in.json, &part, legacyJSON); err != nil {
			return err
		}
		if p == nil || part.Topic < 0 || part.Topic >= len(p.sent) {
			return errors.New("it holds messages of a topic that was not published to")
		}
		if size += len(part.Lags) + len(part.Answers); size > maxColumns {
			return fmt.Errorf("its messages are over %d MiB", maxColumns>>20)
		}
		c := &p.sent[part.Topic]
		c.lags, c.answers = append(c.lags, part.Lags...), append(c.answers, part.Answers...)
		return nil
	})
}

// A counter counts the bytes that are read.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// A boundedReader reads the unpacked text of a shard within limits.
type boundedReader struct {
	from   io.Reader
	packed *counter
	json   *jsontext.Decoder
	n      int64
}

// legacyJSON makes version 2 decode as encoding/json does, at twice its speed: a merge of a large run spends most of its time here.
// Errors have the words of version 2; for those of version 1 it would parse each value twice.
var legacyJSON = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

func newBoundedReader(from io.Reader, packed *counter) *boundedReader {
	in := &boundedReader{from: from, packed: packed}
	in.json = jsontext.NewDecoder(in, legacyJSON)
	return in
}

func (in *boundedReader) Read(p []byte) (int, error) {
	switch {
	case in.n > maxUnpacked || in.n > packedBase+packedTimes*in.packed.n:
		return 0, fmt.Errorf("it unpacks to over %d MiB", in.n>>20)
	case in.n-in.json.InputOffset() > maxValue:
		return 0, fmt.Errorf("it holds a value of over %d MiB", maxValue>>20)
	}
	n, err := in.from.Read(p)
	in.n += int64(n)
	return n, err
}
