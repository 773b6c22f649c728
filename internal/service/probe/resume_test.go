package probe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
)

func TestReasonForNothingToResumeFrom(t *testing.T) {
	t.Parallel()
	for want, block := range map[string]service.Block{
		"No event had an id before the disconnect, so":    {Data: []byte("a"), HasData: true},
		"The last id before the disconnect was empty, so": {Data: []byte("a"), HasData: true, HasID: true},
	} {
		lost := &track{role: plain}
		f := &findings{
			session: &session{disconnected: lost, reopenedAt: time.Now()}, units: map[*track][]*unit{lost: {{block, time.Now()}}},
		}
		r := f.findResume()
		require.Contains(t, r.notes[0], want)
		require.Equal(t, object{{name: "by", value: "none"}}, r.fields)
	}
}
