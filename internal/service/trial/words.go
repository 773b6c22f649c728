package trial

import (
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

func (t *trial) quote(p stream.Part) string {
	var parts []string
	add := func(name string, has bool, value []byte) {
		switch {
		case has && len(value) == 0:
			parts = append(parts, "an empty "+name)
		case has:
			parts = append(parts, name+": "+format.Shorten(secret.Hide(string(value), t.SubscribeToken, t.PublishToken), 160))
		}
	}
	add("event", len(p.Event) > 0, p.Event)
	add("id", p.HasID, p.ID)
	add("data", p.HasData, p.Data)
	add("comment", p.HasComment, p.Comment)
	return strings.Join(parts, ", ")
}
