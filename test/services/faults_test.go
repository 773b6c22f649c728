package services

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// The proxy forwards the messages of each service unchanged, except for the fault of each stream. The description of
// the service detects each changed message as corrupted.
func TestProxyRecognizesMessages(t *testing.T) {
	const topic = "soak-topic-3"
	faults := []struct {
		kind faulty.Kind
		want []int64 // -1: a corrupted message
		end  error
	}{
		{0, []int64{1, 2, 3, 4}, nil},
		{faulty.Lose, []int64{1, 3, 4}, nil},
		{faulty.Repeat, []int64{1, 2, 2, 3, 4}, nil},
		{faulty.Swap, []int64{1, 3, 2, 4}, nil},
		{faulty.NoNumber, []int64{1, -1, 3, 4}, nil},
		{faulty.OtherDigit, []int64{1, -1, 3, 4}, nil},
		{faulty.OtherMarker, []int64{1, -1, 3, 4}, nil},
		{faulty.OtherTime, []int64{1, -1, 3, 4}, nil},
		{faulty.Garble, []int64{1, -1, 3, 4}, nil},
		{faulty.Close, []int64{1}, io.ErrUnexpectedEOF},
		{faulty.Reset, []int64{1}, syscall.ECONNRESET},
	}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := startService(t, name, Options{})
			o := faulty.Options{}
			for i, f := range faults {
				if f.kind != 0 {
					o.Faults = append(o.Faults, faulty.Fault{Kind: f.kind, Stream: i + 1, Message: 2})
				}
			}
			proxy, err := faulty.Start(r.URL, o)
			require.NoError(t, err)
			t.Cleanup(proxy.Stop)
			v := service.Values{Base: proxy.URL, Topic: topic, Run: "r1"}
			var streams []*subscriber
			for range faults {
				streams = append(streams, subscribe(t, r, s, v, ""))
			}
			messages := 0
			for i := range 4 {
				publish(t, r, s, v, int64(i+1))
				if messages += len(faults); i >= 2 {
					messages -= 2 // faults have disconnected two streams
				}
				// PocketBase does not keep the order of concurrent messages, so each must arrive before the next one is published.
				require.Eventually(t, func() bool { return proxy.MessageCount() == messages }, deadline, time.Millisecond)
			}
			require.Equal(t, 4, proxy.PublishCount())
			for i, f := range faults {
				require.Eventually(t, func() bool {
					return len(streams[i].ofKind(service.Delivery)) == len(f.want) && (f.end == nil || streams[i].end() != nil)
				}, deadline, 5*time.Millisecond, f.kind)
				var numbers []int64
				for _, m := range streams[i].ofKind(service.Delivery) {
					if m.Err != nil {
						m.Seq = -1
					}
					numbers = append(numbers, m.Seq)
				}
				require.Equal(t, f.want, numbers, f.kind)
				require.ErrorIs(t, streams[i].end(), f.end, f.kind)
			}
			actions := proxy.Actions()
			require.Len(t, actions, len(faults)-1)
			for _, d := range actions {
				require.Equal(t, topic, d.Topic)
				require.Equal(t, int64(2), d.Number)
				require.Equal(t, faults[d.Stream-1].kind, d.Fault)
			}
		})
	}
}
