package ledger

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// A field that Counts.list omits fails this test.
func TestSumsHaveEveryCount(t *testing.T) {
	t.Parallel()
	var one, sum Counts
	fields := reflect.ValueOf(&one).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetUint(uint64(i + 1))
	}
	sum.Add(one)
	require.Equal(t, one, sum)
	require.Equal(t, uint64(fields.NumField()), sum.Max())
	sum.Add(one)
	for i := range fields.NumField() {
		require.Equal(t, uint64(2*i+2), reflect.ValueOf(sum).Field(i).Uint(), fields.Type().Field(i).Name)
	}
}

// Tables, metrics and CSV files use the JSON name of each total.
func TestTotalNamesMatchJSON(t *testing.T) {
	t.Parallel()
	var totals Totals
	fields := reflect.ValueOf(&totals).Elem()
	want := map[string]uint64{}
	for i := range fields.NumField() {
		fields.Field(i).SetUint(uint64(i + 1))
		want[fields.Type().Field(i).Tag.Get("json")] = uint64(i + 1)
	}
	got := map[string]uint64{}
	for _, n := range totals.Each() {
		got[n.Name] = n.Count
	}
	require.Equal(t, want, got)
}
