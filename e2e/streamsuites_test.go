//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/verdict"
)

func TestChurn(t *testing.T) {
	t.Parallel()
	r := smoke(t, "churn", "--seed", "7")
	v := r.judged()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Greater(t, v.Connections.Planned, 100, "lives")
	require.Equal(t, v.Connections.Planned, v.Connections.Completed)
	require.Positive(t, v.Noops.Received)
	require.Equal(t, v.Noops.Received, v.Server.Sent)
	require.Len(t, section(v, "Lives by length").Rows, 4)
	require.Len(t, section(v, "The backend, early and late").Rows, 4)
}

func TestChurnFindsTheLifeThatLostANoop(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"BACKEND_FAULT=drop:noop=2"}, "churn", "--profile", "smoke", "--mean-hold", "5", "--runners", "1")
	v := r.judged()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.EqualValues(t, 1, v.Noops.Missed, reasons(v))
	require.Regexp(t, `churn-\d+ missed noop 2`, reasons(v))
}

// patient keeps a test beside many others from finding the limit of this machine.
var patient = []string{"--late-ms", "20000"}

func TestCapacity(t *testing.T) {
	t.Parallel()
	r := smoke(t, "capacity", patient...)
	v := r.judged()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Len(t, section(v, "Steps").Rows, 3)
	require.Contains(t, factOf(v, "breaks"), "not reached: 150 connections")
}

func TestCapacityFindsTheLimit(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"MAX_CONNECTIONS=120"}, append([]string{"capacity", "--profile", "smoke"}, patient...)...)
	v := r.judged()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Contains(t, factOf(v, "breaks"), "between 100 and 150 connections (30 connects failed")
	require.Equal(t, []string{"conservative", "2.5×", "40"}, section(v, "Recommended maximum loads").Rows[0][:3])

	r = begin(t, []string{"MAX_CONNECTIONS=30"}, append([]string{"capacity", "--profile", "smoke"}, patient...)...)
	require.Equal(t, verdict.Fail, r.judged().Verdict, "not even the first step: %s", r.out.String())
}

func TestFanout(t *testing.T) {
	t.Parallel()
	r := smoke(t, "fanout")
	v := r.judged()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Equal(t, "400", factOf(v, "deliveries"), "5 broadcasts to 20 streams, and 5 to 60")
	require.Equal(t, v.Noops.Received+400, v.Server.Sent, "messages are in the books of both sides")
}
