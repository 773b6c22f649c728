package probe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

func TestSingleHeartbeat(t *testing.T) {
	t.Parallel()
	start := time.Now()
	observed := &track{role: plain, open: new(stream.Stream), headersAt: start, endedAt: start.Add(time.Minute)}
	f := &findings{
		session: &session{Config: Config{Pace: time.Second}, requests: &requests{}, tracks: []*track{observed}},
		units:   map[*track][]*unit{observed: {{service.Block{HasComment: true}, start.Add(40 * time.Second)}}},
	}
	require.Equal(t, []string{"Received once: a comment (:), after 40 s. The longest silence of a stream was 40 s."}, f.findHeartbeat().notes)
}
