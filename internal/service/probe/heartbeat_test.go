package probe

import (
	"fmt"
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
func TestMessagesAreNoHeartbeatsOrGreetings(t *testing.T) {
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
