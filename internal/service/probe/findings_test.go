package probe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSingleHeartbeat(t *testing.T) {
	t.Parallel()
	f := newFindings()
	f.add(plain, 0, block(40*time.Second, "", ""))
	require.Equal(t, []string{"Received once: a comment (:), after 40 s. The longest silence of a stream was 40 s."}, f.findHeartbeat().notes)
}

// A stream that opens between two heartbeats of all streams receives the first one early.
func TestSingleHeartbeatOfAllStreams(t *testing.T) {
	t.Parallel()
	for hasOneTimer, interval := range map[bool]any{true: nil, false: 7.0} {
		f := newFindings()
		for n := range 3 {
			opened, at := time.Duration(n)*250*time.Millisecond, 7*time.Second
			if !hasOneTimer {
				at += opened
			}
			f.add(plain, opened, block(at, "", ""))
		}
		found := f.findHeartbeat()
		require.Equal(t, interval, found.match.value("every"))
		require.Contains(t, found.notes[0], "(:), after ")
		require.Equal(t, hasOneTimer, len(f.missing) > 0)
	}
}

// Three streams receive each of ten messages at the same time. A fourth stream opens after the first message. Another
// service sends an event after each message.
func TestMessagesAreNotHeartbeatsOrGreetings(t *testing.T) {
	t.Parallel()
	f, other := newFindings(), newFindings()
	for n, opened := range []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 4 * time.Second} {
		observed := f.add([]role{plain, plain, plain, fresh}[n], opened)
		for message := range 10 {
			if at := 900*time.Millisecond + time.Duration(message)*5*time.Second; at > opened {
				f.units[observed] = append(f.units[observed], block(at, "", fmt.Sprintf(`{"goal":%d}`, message)))
			}
		}
	}
	observed := other.add(plain, 0)
	for message := 1; message <= 10; message++ {
		at := time.Duration(message) * 2 * time.Second
		other.units[observed] = append(other.units[observed], block(at, "chat", fmt.Sprint(message)), block(at+time.Millisecond, "end", ""))
	}
	for _, f := range []*findings{f, other} {
		require.Empty(t, f.findHeartbeat().match)
		require.Empty(t, f.greetings())
	}
}

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

func TestTimesAreNotSequences(t *testing.T) {
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

func TestReasonForNothingToResumeFrom(t *testing.T) {
	t.Parallel()
	for want, last := range map[string]*unit{
		"No event had an id before the disconnect, so":    block(0, "", "a"),
		"The last id before the disconnect was empty, so": withID(block(0, "", "a"), ""),
	} {
		f := newFindings()
		f.session.disconnected, f.session.reopenedAt = f.add(plain, 0, last), started
		r := f.findResume()
		require.Contains(t, r.notes[0], want)
		require.Equal(t, object{{name: "by", value: "none"}}, r.fields)
	}
}

func TestGreetingIsNotARepeatedMessage(t *testing.T) {
	t.Parallel()
	f := newFindings()
	add := func(r role, opened time.Duration, messages ...int) *track {
		units := []*unit{block(opened, "", "hello")}
		for _, m := range messages {
			at := max(opened+time.Millisecond, time.Duration(m)*2*time.Second)
			units = append(units, withID(block(at, "", "x"), fmt.Sprint(m)))
		}
		return f.add(r, opened, units...)
	}
	f.session.disconnected = add(plain, 0, 1, 2, 3)
	reopened := add(resumed, 10*time.Second, 3, 4, 5, 6)
	add(fresh, 10*time.Second, 6)
	require.Equal(t, 1, f.countRepeated(reopened), "message 3 is repeated")
}

func TestPublishedMessagesMayBeResentSlowly(t *testing.T) {
	t.Parallel()
	f := newFindings()
	reopened := f.add(resumed, 0, block(0, "", "a"), block(2*time.Second, "", "b"), block(4*time.Second, "", "c"))
	missed := func() map[string]bool {
		keys := map[string]bool{}
		for _, u := range f.units[reopened] {
			keys[f.key(u)] = true
		}
		return keys
	}
	require.Equal(t, 1, f.countResent(reopened, missed()), "later messages of the service may be new ones with the same content")
	f.session.published = []publication{{seq: 1}}
	require.Equal(t, 3, f.countResent(reopened, missed()), "published messages are unique")
}

// sharedFindings returns the findings of three streams with a greeting and ten prices, one every 3 s. content returns
// the data of a price.
func sharedFindings(content func(client, message int) string) *findings {
	f := newFindings()
	for stream := range 3 {
		units := []*unit{block(time.Millisecond, "hello", fmt.Sprint(stream))}
		for message := 1; message <= 10; message++ {
			at := time.Duration(message)*3*time.Second + time.Duration(stream)*time.Millisecond
			units = append(units, block(at, "price", content(stream, message)))
		}
		f.add(plain, 0, units...)
	}
	return f
}

func TestSharedMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content func(stream, message int) string
		want    string
	}{
		"the same data": {func(_, message int) string { return fmt.Sprintf(`{"price":%d}`, message*7919%100) }, `{"event":["price"],"same":"data"}`},
		"a personal field": {
			func(stream, message int) string {
				return fmt.Sprintf(`{"a":"x","price":%d,"you":%d}`, message*7919%100, stream)
			},
			`{"event":["price"],"same":"json:$.price"}`,
		},
		"other data per stream": {func(stream, message int) string { return fmt.Sprintf(`{"price":%d}`, message*7919%100+stream) }, `{}`},
		"constant data":         {func(int, int) string { return `{"price":1}` }, `{}`},
	} {
		require.Equal(t, c.want, string(toJSON(sharedFindings(c.content).findShared(object{}))), name)
	}
}

func TestRepeatedContentIsShared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content func(n int) uint64
		want    int
	}{
		"six values":  {func(n int) uint64 { return uint64(max(n%6, 6-n%6)) }, 40}, // #nosec G115 -- small
		"few changes": {func(n int) uint64 { return uint64(n / 10) }, 0},           // #nosec G115 -- small
		"two values":  {func(n int) uint64 { return uint64(n % 2) }, 0},            // #nosec G115 -- small
	} {
		var list []arrival
		for n := range 40 {
			list = append(list, arrival{c.content(n), started.Add(time.Duration(n) * time.Second)})
		}
		require.Equal(t, c.want, countCommon([][]arrival{list, list}, started.Add(-1), started.Add(time.Hour)), name)
	}
}

func TestRareNamesAreShared(t *testing.T) {
	t.Parallel()
	f := sharedFindings(func(_, message int) string { return fmt.Sprintf(`{"price":%d}`, message*7919%100) })
	for _, blocks := range f.units {
		blocks[0].Event = []byte("user-1") // each name is rarer than minShared
		for i, u := range blocks[1:] {
			u.Event = fmt.Appendf(nil, "user-%d", i/2)
		}
	}
	blocks := f.units[f.session.tracks[0]]
	blocks[0].Event = []byte("user-99") // arrived on one stream only, before the others were open
	require.Equal(t, `{"same":"data"}`, string(toJSON(f.findShared(object{}))))
}
