package shard

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// fill sets every field to a non-zero value; values other than booleans differ. Each list gets two elements.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n) << (*n % 40) * int64(1-*n%2*2))
	case reflect.Uint64:
		v.SetUint(math.MaxUint64 - uint64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	default:
		panic("fill a record: unsupported type " + v.Kind().String())
	}
}

// Packing and unpacking preserve every field of a record, including fields added later.
func TestPackedRecordRoundTrip(t *testing.T) {
	t.Parallel()
	var full ledger.Record
	n := 0
	fill(reflect.ValueOf(&full).Elem(), &n)
	all := []ledger.Record{full, {}, {ID: "d-1", State: ledger.Completed, StreamTime: -time.Second}, full}
	for i := range full.Findings {
		all = append(all, ledger.Record{Findings: full.Findings[:i]}, ledger.Record{Cuts: &ledger.Cuts{}})
	}
	for i := range reflect.TypeFor[ledger.Record]().NumField() { // each field alone, in the order of declaration
		var withOneField ledger.Record
		reflect.ValueOf(&withOneField).Elem().Field(i).Set(reflect.ValueOf(full).Field(i))
		all = append(all, withOneField)
	}
	var c Connections
	for i, r := range all {
		c.Add(&Connection{Record: r, Runner: min(i/2, 1)})
	}
	require.Equal(t, len(all), c.Len())
	for range 2 {
		count := 0
		for i, connection := range c.All() {
			want := all[i]
			if len(want.Findings) == 0 {
				want.Findings = nil
			}
			require.Equal(t, want, connection.Record)
			require.Equal(t, min(i/2, 1), connection.Runner)
			count++
		}
		require.Equal(t, len(all), count)
	}
}

// A packed record without findings needs less than a quarter of the memory of a ledger.Record.
func TestPackedRecordSize(t *testing.T) {
	t.Parallel()
	var c Connections
	record := ledger.Record{
		ID: "soak-laptop-123456", State: ledger.Completed, Reason: "server_closed", Numbered: true, Attempts: 1, Streams: 1, Connect: 5123456,
		OpenedAt: 5123456, ClosedAt: time.Hour, StreamTime: time.Hour, OpenTime: time.Hour, OutageTime: 5123456, LastAt: time.Hour, Last: 239, Numberings: 1,
		Interval: 15 * time.Second, MaxGap: 15*time.Second + 12345, MaxLateness: 12345, Longest: ledger.Outage{To: 5123456}, Counts: ledger.Counts{Received: 239},
	}
	for range 1000 {
		c.Add(&Connection{Record: record})
	}
	require.Less(t, c.parts[0].text.Len(), 160*1000)
}

func TestEditedRecordsStayEdited(t *testing.T) {
	t.Parallel()
	var c Connections
	for i := range 3 {
		c.Add(&Connection{Record: ledger.Record{ID: fmt.Sprint(i)}, Runner: i})
	}
	c.Edit(1).Late = 7
	require.Same(t, c.Edit(1), c.Edit(1))
	for i, connection := range c.All() {
		require.Equal(t, ledger.Counts{Late: uint64(7 * (i % 2))}, connection.Counts)
	}
	for i, connection := range c.recordsOf(1, 2) {
		require.Equal(t, 1, i)
		require.EqualValues(t, 7, connection.Late)
	}
}
