package publish

import (
	"bufio"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// A server may close an idle connection at any time (RFC 9112, 9.5).
func TestConnectionIdleForASecondIsNotReused(t *testing.T) {
	t.Parallel()
	base, dials := serveCounting(t, okResponse, true)
	c := newConfig(t, base)
	c.Rate, c.For, c.Topics = 0.8, 2400*time.Millisecond, []string{"a"}
	p := publishAll(t, c)
	require.Equal(t, shard.PublishSums{Sent: 2, Confirmed: 2}, withoutLag(p.Sums()))
	require.EqualValues(t, 2, dials.Load())
}

// If the service closes an idle connection while a message is in transit, the publisher cannot determine whether the
// service received the message. The publisher does not send it again, and records that the connection had been idle.
func TestConnectionClosedAsIdleIsRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rate float64
		part string // part of the response before the connection ends; "new": each connection ends without a response
		idle bool
	}{
		"idle for 300 ms":      {rate: 3.3, idle: true}, // between minIdle and maxIdle, far from both
		"part of a response":   {rate: 3.3, part: "HTTP/1.1 2"},
		"on a busy connection": {rate: shard.MaxRate}, // the second message is due before the first answer
		"on a new connection":  {rate: 3.3, part: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			base := serve(t, func(conn net.Conn, in *bufio.Reader) {
				for {
					if _, _, err := request(in); err != nil {
						return
					}
					if n := requests.Add(1); n == 2 || c.part == "new" {
						if c.part != "new" {
							_, _ = io.WriteString(conn, c.part)
						}
						return
					}
					_, _ = io.WriteString(conn, okResponse)
				}
			})
			config := newConfig(t, base)
			config.Rate, config.For, config.Topics = c.rate, time.Duration(2.9/c.rate*float64(time.Second)), []string{"a"}
			p := publishAll(t, config)
			require.EqualValues(t, 3, p.Sums().Sent)
			require.EqualValues(t, 3, requests.Load(), "each message must be sent once")
			require.Len(t, p.Unanswered(), 1)
			require.Equal(t, c.idle, p.Unanswered()[0].Idle)
			if c.idle {
				require.Contains(t, p.Unanswered()[0].Text, "the connection was closed before the response was complete; the connection had been idle for ")
			}
		})
	}
}

// The next message of a topic waits for the end of the body.
func TestTimeToTheEndOfABodyIsRecorded(t *testing.T) {
	t.Parallel()
	const late = 300 * time.Millisecond
	base := serve(t, func(c net.Conn, in *bufio.Reader) {
		for {
			if _, _, err := request(in); err != nil {
				return
			}
			_, _ = io.WriteString(c, okResponse[:len(okResponse)-2])
			time.Sleep(late)
			_, _ = io.WriteString(c, "ok")
		}
	})
	c := newConfig(t, base)
	c.Rate, c.Topics = 4, []string{"a"}
	p := publishAll(t, c)
	require.EqualValues(t, 2, p.Sums().Confirmed)
	require.GreaterOrEqual(t, p.MaxBodyUS, late.Microseconds())
	require.Less(t, p.MaxBodyUS, 10*late.Microseconds())
}
