package probe

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The times are fixed, because messages of a real stream are irregular on a busy machine.
func TestMessageInterval(t *testing.T) {
	t.Parallel()
	for want, at := range map[string][]time.Duration{
		`{"every":0.1}`: {0, 100 * time.Millisecond, 195 * time.Millisecond, 310 * time.Millisecond, 400 * time.Millisecond},
		`{"every":15}`:  {0, 15 * time.Second, 31 * time.Second, 45 * time.Second, 60 * time.Second},
		`{ }`:           {0, time.Microsecond, 2 * time.Microsecond, 3 * time.Microsecond, 4 * time.Microsecond},
		`{}`:            {0, time.Second, 2 * time.Second, 2100 * time.Millisecond, 4 * time.Second},
	} {
		var m message
		messages := series{track: &track{role: plain}}
		for _, since := range at {
			messages.units = append(messages.units, &unit{at: time.Unix(1_700_000_000, 0).Add(since)})
		}
		(&findings{}).findInterval(&m, []series{messages})
		require.Equal(t, strings.ReplaceAll(want, " ", ""), string(toJSON(m.match)), at)

		numbered := message{match: object{{name: "per", value: "topic"}}}
		(&findings{}).findInterval(&numbered, []series{messages})
		require.Equal(t, `{"per":"topic"}`, string(toJSON(numbered.match)), "message.every cannot be combined with numbers per topic")
	}
}
