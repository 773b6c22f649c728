package run

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A part with a client that received nothing fails, and names the reason.
func TestPartWithClientsWithoutMessages(t *testing.T) {
	t.Parallel()
	for silent, want := range map[int]verdict.Outcome{0: verdict.Pass, 1: verdict.Fail} {
		out := new(bytes.Buffer)
		s := newSession(Config{Suite: suite.Default(), Plan: plan.Default(), Stdout: out})
		s.service = shard.Service{CountBasis: shard.CountByNumber}
		result := &shard.Shard{Runner: shard.Runner{State: shard.Finished}}
		for n := range 3 {
			l := ledger.New(fmt.Sprintf("soak-%d", n), &ledger.Config{Counting: ledger.Numbered, ClientEnds: true, LatenessLimit: time.Second})
			l.Connecting(1)
			l.Opened(2)
			if n >= silent {
				l.Delivered(&ledger.Delivery{At: 3, Number: 1})
			}
			l.CloseRequested(4)
			l.Closed(5, ledger.ReasonClient, false, false)
			result.Ledgers = append(result.Ledgers, l)
		}
		require.Equal(t, want, s.reportPart(result), out)
		require.Contains(t, out.String(), fmt.Sprintf(": 3 clients connected, 0 refused, 0 dropped; %d messages received, 0 missed, 0 faulty, 0 late", 3-silent))
		require.Equal(t, silent > 0, bytes.Contains(out.Bytes(), []byte("; 1 client received no message\n")), out)
	}
}
