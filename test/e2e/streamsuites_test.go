//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

func TestChurn(t *testing.T) {
	t.Parallel()
	r := smoke(t, "churn", "--seed", "7")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Regexp(t, `(?m)^00:\d\d/00:09 `, r.out.String(), "the progress line must have the planned length")
	require.Greater(t, v.Connections.Planned, 100)
	require.Equal(t, v.Connections.Planned, v.Connections.Completed)
	require.Positive(t, v.Messages.Received)
	require.Equal(t, v.Messages.Received, v.Server.Sent)
	require.Len(t, section(v, "Connections by lifetime").Rows, 4)
	require.Len(t, section(v, "The backend, early and late").Rows, 4)
}

func TestChurnNamesTheConnectionWithALoss(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"BACKEND_FAULT=drop:noop=2"}, "churn", "--profile", "smoke", "--mean-hold", "5", "--runners", "1")
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.EqualValues(t, 1, v.Messages.Missed, reasons(v))
	require.Regexp(t, `churn-\d+ missed noop 2`, reasons(v))
}

// A service acknowledges the request to end a stream, but does not end the stream.
func TestChurnFailsIfStreamsNeverEnd(t *testing.T) {
	t.Parallel()
	service, url := startFake(t, bareService(time.Second), fakeservice.Strike{Fault: fakeservice.Fault{NeverEnds: true}})
	v := smoke(t, "churn", "--end-timeout", "1", "--late-ms", "20000", "--backend-url", url).verdict()
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	opened, _ := service.ClientCounts()
	require.Equal(t, v.Connections.Planned, opened, "each planned stream must be opened")
	require.Equal(t, v.Connections.Planned, v.Connections.Unfinished)
	require.Contains(t, reasons(v), "the server did not end 220 streams within")
}

// tolerantFlags prevent failures that a busy machine would cause while many tests run.
var tolerantFlags = []string{"--late-ms", "20000"}

func TestCapacity(t *testing.T) {
	t.Parallel()
	r := smoke(t, "capacity", tolerantFlags...)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Len(t, section(v, "Steps").Rows, 3)
	require.Contains(t, factOf(v, "breaking point"), "not reached: 150 streams")
}

func TestCapacityFindsTheLimit(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"MAX_CONNECTIONS=120"}, append([]string{"capacity", "--profile", "smoke"}, tolerantFlags...)...)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Contains(t, factOf(v, "breaking point"), "between 100 and 150 streams (30 connects failed")
	require.Equal(t, []string{"conservative", "2.5×", "40"}, section(v, "Recommended maximum loads").Rows[0][:3])
}

func TestFanout(t *testing.T) {
	t.Parallel()
	r := smoke(t, "fanout")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Regexp(t, `(?m)^00:\d\d/00:47 `, r.out.String(), "the progress line must have the planned length")
	require.Equal(t, "400", factOf(v, "deliveries"), "there must be 5 broadcasts to 20 streams and 5 to 60 streams")
	require.Equal(t, v.Messages.Received+400, v.Server.Sent, "service and clients must count the same messages")
}

// One subscriber receives the second broadcast twice, another one never; the sum of all deliveries is correct. The
// service sets the timestamp of a broadcast 300 ms after the request. The delivery is therefore fast when measured from
// the timestamp, but slow when measured from the request.
func TestFanoutCountsSubscribersAndMeasuresSinceTheRequest(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	spec := bareService(time.Second)
	spec.Slow, spec.Stamp = fakeservice.SlowKeep, delay
	spec.Copies = func(id string, broadcast int) int {
		switch {
		case broadcast == 2 && id == "fanout-3":
			return 2
		case broadcast == 2 && id == "fanout-4":
			return 0
		}
		return 1
	}
	_, url := startFake(t, spec, fakeservice.Strike{})
	v := smoke(t, "fanout", "--levels", "20", "--late-ms", "20000", "--delivery-seconds", "2", "--backend-url", url).verdict()
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), "99 of 100 deliveries arrived in time")
	require.Contains(t, reasons(v), "1 delivery repeated a broadcast that the subscriber had already received")
	require.Equal(t, []uint64{0, 0}, []uint64{v.Messages.Missed, v.Messages.Duplicated}, reasons(v))
	require.Len(t, v.Metrics, 2)
	byStamp, sinceRequest := v.Metrics[0].Value, v.Metrics[1].Value
	require.GreaterOrEqual(t, sinceRequest, float64(delay.Milliseconds()))
	require.GreaterOrEqual(t, sinceRequest-byStamp, 0.9*float64(delay.Milliseconds()), "the timestamp must hide the delay")
}
