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

type schemaError int

func (s schemaError) Error() string {
	return fmt.Sprintf("schema must be %d, got %d; merge the shard with the version of soak that wrote it", Schema, int(s))
}

// shard reads the shard: long lists element by element, to limit the memory, and the other fields at the end.
func (in *boundedReader) shard() (*Shard, error) {
	var s Shard
	type plain Shard
	return &s, in.object((*plain)(&s), func(key string, fields *bytes.Buffer) error { return in.value(&s, key, fields) })
}

// object reads an object. read reads each member, or keeps it in fields, which are decoded into out at the end.
func (in *boundedReader) object(out any, read func(key string, fields *bytes.Buffer) error) error {
	first, err := in.json.ReadToken()
	if err != nil || first.Kind() == 'n' {
		return err
	}
	if first.Kind() != '{' {
		return errors.New("not a JSON object")
	}
	fields := bytes.NewBufferString("{")
	if err := in.members(func(key string) error { return read(key, fields) }); err != nil {
		return err
	}
	fields.WriteByte('}')
	return json.Unmarshal(fields.Bytes(), out)
}

// members reads the members of an object after its brace. It rejects duplicate keys, and more than maxKeys.
func (in *boundedReader) members(read func(key string) error) error {
	keys := map[string]bool{}
	for in.json.PeekKind() != '}' {
		token, err := in.json.ReadToken()
		if err != nil {
			return err
		}
		key := token.String()
		if keys[key] || len(keys) == maxKeys {
			return fmt.Errorf("a shard must have at most %d keys without duplicates, got another %.40q", maxKeys, key)
		}
		keys[key] = true
		if err := read(key); err != nil {
			return err
		}
	}
	_, err := in.json.ReadToken()
	return err
}

// value reads the value of a key. Lists, the schema and the publisher are read into s, any other value into fields.
func (in *boundedReader) value(s *Shard, key string, fields *bytes.Buffer) error {
	if key != "schema" && s.Schema != Schema { // schema is the first key
		return schemaError(s.Schema)
	}
	switch key {
	case "schema":
		return jsonv2.UnmarshalDecode(in.json, &s.Schema)
	case "series":
		return readList(in, key, maxBuckets, &s.Series)
	case "points":
		return readList(in, key, MaxPoints, &s.Points)
	case "seconds":
		return readList(in, key, maxSeconds, &s.Seconds)
	case "checks":
		return readList(in, key, maxChecks, &s.Checks)
	case "metrics":
		return readList(in, key, maxMetrics, &s.Metrics)
	case "connections":
		return in.records(s)
	case "published":
		err := jsonv2.UnmarshalDecode(in.json, &s.Published)
		if p := s.Published; err == nil && p != nil {
			p.columns = make([]column, min(len(p.Topics), MaxTopics))
		}
		return err
	case "messages":
		return in.messages(s.Published)
	case "reach":
		return in.reach(s)
	case "responses":
		s.Responses = &Responses{}
		return in.object(s.Responses, func(key string, fields *bytes.Buffer) error {
			if key == "series" {
				return readList(in, key, maxBuckets, &s.Responses.Series)
			}
			return in.keep(key, fields)
		})
	case "feeds":
		return in.feeds(s)
	}
	return in.keep(key, fields)
}

// keep adds a raw value to an object that is decoded at the end.
func (in *boundedReader) keep(key string, fields *bytes.Buffer) error {
	raw, err := in.json.ReadValue()
	if err != nil {
		return err
	}
	name, err := json.Marshal(key)
	if err != nil {
		return err
	}
	if fields.Len() > 1 {
		fields.WriteByte(',')
	}
	fields.Write(name)
	fields.WriteByte(':')
	fields.Write(raw)
	if fields.Len() > maxValue {
		return fmt.Errorf("fields other than lists must have at most %d MiB", maxValue>>20)
	}
	return nil
}

// readList reads a long list. It doubles the capacity, because append would allocate five times the memory in total.
func readList[T any](in *boundedReader, name string, limit int, list *[]T) error {
	return in.elements(name, limit, func() error {
		if len(*list) == cap(*list) {
			*list = append(make([]T, 0, min(max(2*len(*list), 16), limit)), *list...)
		}
		*list = (*list)[:len(*list)+1]
		return jsonv2.UnmarshalDecode(in.json, &(*list)[len(*list)-1])
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
			return fmt.Errorf("a client must have at most %d KiB", maxRecord>>10)
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
			return errors.New("lists of a client must not have empty elements")
		}
		if s.packed.bytes > maxRecords {
			return fmt.Errorf("connections must have at most %d MiB", maxRecords>>20)
		}
		return nil
	})
}

func (in *boundedReader) messages(p *Published) error {
	size := 0
	return in.elements("messages", maxPieces, func() error {
		var part piece
		if err := jsonv2.UnmarshalDecode(in.json, &part, LegacyJSON); err != nil {
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
func (in *boundedReader) reach(s *Shard) error {
	in.longest = maxReach
	defer func() { in.longest = maxValue }()
	s.Reach = &Reach{}
	size, rest := 0, reachJSON{}
	defer func() { s.Reach.numbers = rest.Most }()
	return in.object(&rest, func(key string, fields *bytes.Buffer) error {
		if key != "topics" {
			return in.keep(key, fields)
		}
		return in.elements(key, MaxTopics, func() error {
			var topic []byte
			if err := jsonv2.UnmarshalDecode(in.json, &topic, LegacyJSON); err != nil {
				return err
			}
			if size += len(topic); size > maxReach {
				return fmt.Errorf("reach must have at most %d MiB", maxReach>>20)
			}
			return s.Reach.addTopic(topic)
		})
	})
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
	source  io.Reader    // unpacks the file
	packed  *byteCounter // reads the file
	json    *jsontext.Decoder
	n       int64 // number of unpacked bytes
	longest int64 // maximum bytes of a value
}

// LegacyJSON makes version 2 of encoding/json decode like version 1, at twice the speed. Decoding takes most of the
// time of a merge. Errors have the text of version 2, because errors of version 1 require a second parse of each value.
var LegacyJSON = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

// Read fails if the unpacked text, its ratio to the packed bytes, or a single value exceeds its limit.
func (in *boundedReader) Read(p []byte) (int, error) {
	switch {
	case in.n > maxUnpacked || in.n > packedBase+packedTimes*in.packed.n:
		return 0, fmt.Errorf("the unpacked shard exceeds %d MiB", in.n>>20)
	case in.n-in.json.InputOffset() > in.longest:
		return 0, fmt.Errorf("a value must have at most %d MiB", in.longest>>20)
	}
	n, err := in.source.Read(p)
	in.n += int64(n)
	return n, err
}
