//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// goodNoop is a noop as text on the wire.
const goodNoop = "data: 0\n\n"

// faultAboveFifty returns the noops of a service with a fault on the streams beyond the 50th.
func faultAboveFifty(bad func(n int) string) func(string, int) string {
	return func(id string, n int) string {
		var number int
		if _, err := fmt.Sscanf(id, "capacity-%d", &number); err == nil && number >= 50 {
			return bad(n)
		}
		return goodNoop
	}
}

// faultOnAllStreams returns the noops of a service with a fault on all streams.
func faultOnAllStreams(bad func(n int) string) func(string, int) string {
	return func(_ string, n int) string { return bad(n) }
}

func TestCapacityOfBadServices(t *testing.T) {
	t.Parallel()
	silence := func(int) string { return "" }
	everyOtherNoop := func(n int) string { return strings.Repeat(goodNoop, n%2) }
	for _, c := range []struct {
		name     string
		text     func(id string, n int) string
		want     verdict.Outcome
		breaks   string // breaking point
		wantText string
	}{
		{"silent beyond 50", faultAboveFifty(silence), verdict.Pass, "between 50 and 100 streams", ""},
		{"every other noop lost", faultOnAllStreams(everyOtherNoop), verdict.Fail, "below 50 streams", "missed 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := bareService(time.Second)
			spec.Text = c.text
			_, url := startFake(t, spec, fakeservice.Strike{})
			v := begin(t, nil, "capacity", "--profile", "smoke", "--backend-url", url, "--late-ms", "2000").verdict()
			require.Equal(t, c.want, v.Verdict, reasons(v))
			require.Contains(t, factOf(v, "breaking point"), c.breaks)
			require.Contains(t, reasons(v), c.wantText)
		})
	}
}

// Each broadcast arrives, but no noop.
func TestFanoutOfAServiceWithoutNoops(t *testing.T) {
	t.Parallel()
	spec := bareService(time.Second)
	spec.Text, spec.Slow = faultOnAllStreams(func(int) string { return "" }), fakeservice.SlowKeep
	_, url := startFake(t, spec, fakeservice.Strike{})
	v := smoke(t, "fanout", "--levels", "20", "--backend-url", url).verdict()
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), "nothing more arrived")
}
