package shard

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/ledger"
)

// Connections is the list of a run's records in the order of their runners. A run may have a million records. A packed
// record needs about 100 bytes, and a ledger.Record almost 700, most of which are 0. The zero value is ready to use.
type Connections struct {
	parts  []*compactPart
	count  int                 // of all records
	bytes  int                 // of all packed records
	edited map[int]*Connection // see Edit
}

type compactPart struct {
	runner, count int
	text          *strings.Builder
}

// compactSize is the size in bytes at which a part is full. The limit bounds the copying while a text grows.
const compactSize = 1 << 20

// Len returns the number of records.
func (c *Connections) Len() int { return c.count }

// Add adds a copy of a record.
func (c *Connections) Add(connection *Connection) { c.add(connection.Runner, &connection.Record) }

func (c *Connections) add(runner int, record *ledger.Record) {
	if last := len(c.parts) - 1; last < 0 || c.parts[last].runner != runner || c.parts[last].text.Len() > compactSize {
		c.parts = append(c.parts, &compactPart{runner: runner, text: new(strings.Builder)})
	}
	f := allFields.Get().(*recordFields) //nolint:forcetypeassert // the pool contains nothing else
	defer allFields.Put(f)
	f.Record = *record
	f.pack()
	part := c.parts[len(c.parts)-1]
	part.text.Write(f.out)
	part.count++
	c.count, c.bytes = c.count+1, c.bytes+len(f.out)
}

// adopt adds the records of a shard. It shares the text of packed records with the shard, and packs others.
func (c *Connections) adopt(runner int, s *Shard) {
	if s.packed == nil {
		for i := range s.Connections {
			c.add(runner, &s.Connections[i])
		}
		return
	}
	for _, part := range s.packed.parts {
		c.parts = append(c.parts, &compactPart{runner: runner, count: part.count, text: part.text})
	}
	c.count, c.bytes = c.count+s.packed.count, c.bytes+s.packed.bytes
}

// All yields each record with its index. A record is valid until the next one; its lists remain valid.
func (c *Connections) All() iter.Seq2[int, *Connection] {
	return c.recordsOf(0, -1)
}

// recordsOf yields the records of the runners from first to end − 1, or to the last runner if end is negative.
func (c *Connections) recordsOf(first, end int) iter.Seq2[int, *Connection] {
	return func(yield func(int, *Connection) bool) {
		f := allFields.Get().(*recordFields) //nolint:forcetypeassert // the pool contains nothing else
		defer allFields.Put(f)
		i := 0
		for _, part := range c.parts {
			if part.runner < first || end >= 0 && part.runner >= end {
				i += part.count
				continue
			}
			f.in, f.offset, f.Runner = part.text.String(), 0, part.runner
			for range part.count {
				f.unpack()
				connection := &f.Connection
				if edited := c.edited[i]; edited != nil {
					connection = edited
				}
				if !yield(i, connection) {
					return
				}
				i++
			}
		}
	}
}

// Edit returns a record that the caller may change, for tests. Merge and verdict do not change records.
func (c *Connections) Edit(i int) *Connection {
	if edited := c.edited[i]; edited != nil {
		return edited
	}
	for at, connection := range c.All() {
		if at == i {
			edited := *connection
			if c.edited == nil {
				c.edited = map[int]*Connection{}
			}
			c.edited[i] = &edited
			break
		}
	}
	return c.edited[i]
}

// renumber replaces the index i of each runner with position[i], and sorts the records by the new indexes.
func (c *Connections) renumber(position []int) {
	for _, part := range c.parts {
		part.runner = position[part.runner]
	}
	slices.SortStableFunc(c.parts, func(a, b *compactPart) int { return a.runner - b.runner })
}

// recordFields is a record with its fields. Reflection finds the fields once, so a new field needs no code here. In
// packed form, a record has a bit mask of the fields that are not 0, followed by these fields.
type recordFields struct {
	Connection
	fields []reflect.Value

	out    []byte // see pack
	in     string // see unpack
	offset int    // of the next byte of in
}

// allFields is a pool of recordFields, because each of them must find its fields only once.
var allFields = sync.Pool{New: func() any {
	f := &recordFields{}
	f.find(reflect.ValueOf(&f.Record).Elem())
	return f
}}

func (f *recordFields) find(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		f.fields = append(f.fields, v)
		return
	}
	for i := range v.NumField() {
		f.find(v.Field(i))
	}
}

func (f *recordFields) maskSize() int { return (len(f.fields) + 7) / 8 }

func (f *recordFields) pack() {
	f.out = append(f.out[:0], make([]byte, f.maskSize())...)
	for i, v := range f.fields {
		if !v.IsZero() {
			f.out[i/8] |= 1 << (i % 8)
			f.put(v)
		}
	}
}

// unpack reads the next record from in. Its texts share the memory of the packed text.
func (f *recordFields) unpack() {
	f.Record = ledger.Record{}
	mask := f.in[f.offset:][:f.maskSize()]
	f.offset += len(mask)
	for i := range len(mask) {
		for set := mask[i]; set != 0; set &= set - 1 { // clears the lowest bit
			f.get(f.fields[8*i+bits.TrailingZeros8(set)])
		}
	}
}

func (f *recordFields) putNumber(n uint64) { f.out = binary.AppendUvarint(f.out, n) }

func (f *recordFields) putText(s string) {
	f.putNumber(uint64(len(s)))
	f.out = append(f.out, s...)
}

func (f *recordFields) nextNumber() (n uint64) {
	for shift := 0; ; shift += 7 {
		c := f.in[f.offset]
		f.offset++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
	}
}

func (f *recordFields) nextInt() int64 {
	n := f.nextNumber()
	return int64(n>>1) ^ -int64(n&1)
}

func (f *recordFields) nextText() (s string) {
	n := int(f.nextNumber()) // #nosec G115 -- bounds.go has limited the length
	s = f.in[f.offset:][:n]
	f.offset += n
	return s
}

func (f *recordFields) put(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // TestPackedRecordRoundTrip covers all types of a record
	case reflect.Int, reflect.Int64:
		f.out = binary.AppendVarint(f.out, v.Int())
	case reflect.Uint64:
		f.putNumber(v.Uint())
	case reflect.Bool:
		f.putNumber(map[bool]uint64{true: 1}[v.Bool()])
	case reflect.String:
		f.putText(v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			f.put(v.Field(i))
		}
	case reflect.Pointer:
		f.put(v.Elem())
	case reflect.Array:
		for i := range v.Len() {
			f.put(v.Index(i))
		}
	case reflect.Slice:
		f.putNumber(clamp.Uint64(v.Len()))
		for i := range v.Len() {
			f.put(v.Index(i))
		}
	default:
		panic("pack a record: unsupported type " + v.Kind().String())
	}
}

func (f *recordFields) get(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // see put
	case reflect.Int, reflect.Int64:
		v.SetInt(f.nextInt())
	case reflect.Uint64:
		v.SetUint(f.nextNumber())
	case reflect.Bool:
		v.SetBool(f.nextNumber() == 1)
	case reflect.String:
		v.SetString(f.nextText())
	case reflect.Struct:
		for i := range v.NumField() {
			f.get(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.get(v.Elem())
	case reflect.Array:
		for i := range v.Len() {
			f.get(v.Index(i))
		}
	case reflect.Slice:
		if n := int(f.nextNumber()); n > 0 { // #nosec G115 -- bounds.go has limited the length
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				f.get(v.Index(i))
			}
		}
	}
}
