package probe

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/memory"
	"github.com/sse-soak/sse-soak/test/module"
)

func TestStoppedProbeWritesDescription(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stop := func(message string) {
			if strings.HasPrefix(message, "published 6 ") { // at least one stream has several messages, one Pace apart
				cancel()
			}
		}
		dial := memory.Serve(t, &fakeservice.Hub{ID: fakeservice.DecimalID})
		result, err := Run(ctx, Config{URL: base + "/sub/{topic}", Publish: publishRequest, Streams: 2, Length: time.Minute, Progress: stop, Dial: dial})
		require.NoError(t, err)
		require.Contains(t, result.Module, "The probe was stopped after ")
		require.Contains(t, string(module.Evaluate(t, result.Module)), published)
	})
}

// A service may send the headers of a stream with the first message. A request that the stop ended is not evidence.
func TestStoppedProbeDoesNotWaitForHeaders(t *testing.T) {
	t.Parallel()
	for answered, want := range map[int64]string{0: "GET " + base + "/sub: no response within 1 s", 1: ""} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			started := time.Now()
			var requests atomic.Int64
			dial := memory.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) <= answered {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, "data: x\n\n")
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			}))
			result, err := Run(ctx, Config{URL: base + "/sub", Streams: 2, Length: time.Minute, Dial: dial})
			if want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, want)
			}
			require.Less(t, time.Since(started), 2*time.Second)
			require.NotContains(t, result.Module, "no response")
		})
	}
}
