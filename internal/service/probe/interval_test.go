package probe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The times are fixed, because messages of a real stream are irregular on a busy machine.
func TestMessageInterval(t *testing.T) {
	t.Parallel()
	for want, at := range map[string][]time.Duration{
		`{"every":0.1}`:  {0, 100 * time.Millisecond, 195 * time.Millisecond, 310 * time.Millisecond, 400 * time.Millisecond},
		`{"every":15}`:   {0, 15 * time.Second, 31 * time.Second, 45 * time.Second, 60 * time.Second},
		`{"every":2.5}`:  {0, 2501 * time.Millisecond, 5 * time.Second, 7502 * time.Millisecond, 10 * time.Second},
		`{"every":4.2}`:  {0, 4200 * time.Millisecond, 8400 * time.Millisecond, 12600 * time.Millisecond},
		`{"every":0.25}`: {0, 250 * time.Millisecond, 500 * time.Millisecond, 760 * time.Millisecond, time.Second, 1250 * time.Millisecond},
		`{"every":1}`:    {0, time.Second, 2 * time.Second, 3 * time.Second, 4060 * time.Millisecond},
		`{  }`:           {0, 7 * time.Second, 14 * time.Second}, // two intervals on several streams may be equal by chance
		`{ }`:            {0, time.Microsecond, 2 * time.Microsecond, 3 * time.Microsecond, 4 * time.Microsecond},
		`{}`:             {0, time.Second, 2 * time.Second, 2100 * time.Millisecond, 4 * time.Second},
	} {
		var m message
		messages := series{track: &track{role: plain}}
		for _, since := range at {
			messages.units = append(messages.units, block(since, "", "x"))
		}
		later := series{messages.track, messages.units[len(at)-2:]} // the streams of one broadcast have the same deviations
		(&findings{}).findInterval(&m, []series{later, later, messages, messages, later})
		require.Equal(t, strings.ReplaceAll(want, " ", ""), string(toJSON(m.match)), at)

		numbered := message{match: object{{name: "per", value: "topic"}}}
		(&findings{}).findInterval(&numbered, []series{messages})
		require.Equal(t, `{"per":"topic"}`, string(toJSON(numbered.match)), "message.every cannot be combined with numbers per topic")
	}
}

func TestTimesAreNoSequence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data func(n int, at time.Time) string
		want string
	}{
		"time of day":         {func(_ int, at time.Time) string { return "It is " + at.Format("3:04:05") }, ""},
		"date":                {func(_ int, at time.Time) string { return at.Format(time.RFC3339Nano) }, ""},
		"seconds since 1970":  {func(_ int, at time.Time) string { return fmt.Sprintf(`{"t":%d}`, at.Unix()) }, ""},
		"counter from a time": {func(n int, _ time.Time) string { return fmt.Sprintf(`{"n":%d}`, started.UnixMilli()+int64(n)) }, "json:$.n"},
		"number and time":     {func(n int, at time.Time) string { return fmt.Sprintf("%s %d", at.Format(time.TimeOnly), n) }, "data:^[0-9]+:[0-9]+:[0-9]+ ([0-9]+)$"},
	} {
		messages := series{track: &track{role: plain}}
		for n := range 20 {
			at := time.Duration(n) * time.Second
			messages.units = append(messages.units, block(at, "", c.data(n, started.Add(at))))
		}
		source, _ := (&findings{session: &session{}}).findSequence([]series{messages})
		require.Equal(t, c.want, source, name)
	}
}

// A pattern that ends with any word would read only the last digit of the number.
func TestSequenceAfterAWordWithDigits(t *testing.T) {
	t.Parallel()
	for example, want := range map[string]string{
		"1732250000-%d":   "id:^[0-9]+-([0-9]+)$",
		"e7_%d":           "id:^[A-Za-z0-9_.-]+_([0-9]+)$",
		"3f2a-44c0.x%d":   "id:^[A-Za-z0-9_.-]+x([0-9]+)$",
		"shard-1:%d":      "id:^[A-Za-z0-9_.-]+:([0-9]+)$",
		"shard 1-%d of 9": "id:^shard [0-9]+-([0-9]+)",
	} {
		messages := series{track: &track{role: plain}}
		for n := 7; n < 112; n++ {
			messages.units = append(messages.units, withID(block(0, "", "x"), fmt.Sprintf(example, n)))
		}
		source, note := (&findings{session: &session{}}).findSequence([]series{messages})
		require.Equal(t, want, source, note)
	}
}

func TestReasonForNoSequenceNamesTheJump(t *testing.T) {
	t.Parallel()
	for ids, want := range map[string]string{
		"1 2 3 4 5 6 8 9":     "the value at 'id' grows, but not always by one (6, 8 …)",
		"1 2 3 4 5 5 6 7 8 9": "the value at 'id' grows, but not always by one (5, 5 …)",
		"1 1 1 1 2 2 2 2":     "No value in the messages grew by one with each message.",
		"1 2 3 4 5 4 6 7 8 9": "No value in the messages grew by one with each message.",
	} {
		messages := series{track: &track{role: plain}}
		for id := range strings.FieldsSeq(ids) {
			messages.units = append(messages.units, withID(block(0, "", "x"), id))
		}
		source, note := (&findings{session: &session{}}).findSequence([]series{messages})
		require.Empty(t, source, ids)
		require.True(t, strings.HasPrefix(note, want), note)
	}
}
