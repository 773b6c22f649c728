package probe

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

func TestEventWithSeveralPublishedMessages(t *testing.T) {
	t.Parallel()
	var previous string
	h := &fakeservice.Hub{Wrap: func(payload string) string {
		batch := "[" + payload + "," + payload + "]"
		if previous != "" {
			batch = "[" + previous + "," + payload + "]"
		}
		previous = payload
		return batch
	}}
	d := probe(t, h, Config{Publish: publishRequest})
	require.Contains(t, d.notes, "message.seq: an event had several published messages, but a run reads one message per event: data: [{")
	require.Contains(t, d.json, `"message":"unchecked"`)
}

func TestEventsWithoutTheCheckedNameAreReported(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{GenerateInterval: 100 * time.Millisecond, Generate: func(_, n int) string {
		return fmt.Sprintf("event: %s\ndata: {\"rev\":%d}\n\n", []string{"cart", "order"}[n%2], n/2)
	}}
	d := probe(t, h, Config{})
	require.Contains(t, d.json, `"message":{"event":"order","seq":"json:$.rev"`)
	require.Contains(t, d.notes, "message.event: a run checks only events with the name 'order', because no sequence of numbers includes 'cart'.")
}
