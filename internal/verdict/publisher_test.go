package verdict

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestNothingIsOwedThatTheServiceDidNotConfirmButPublishingFails(t *testing.T) {
	t.Parallel()
	for _, state := range []shard.MessageState{shard.Refused, shard.Open} {
		p := newPublishedRun()
		p.outcome = func(topic int, number uint64) shard.MessageState {
			if topic == 1 && number == 5 {
				return state
			}
			return shard.Confirmed
		}
		p.loses(func(stream int, number uint64) bool { return stream%2 == 1 && number == 5 && stream > 1 }) // one stream got it all the same
		v := p.judge(t)
		require.Equal(t, Fail, v.Verdict)
		require.Zero(t, v.Messages.Missed)
		require.EqualValues(t, 39, v.Messages.Published.Confirmed)
		require.Len(t, v.Reasons, 1)
		require.Contains(t, v.Reasons[0], "number 5 of topic s-topic-1")
	}
}

func TestAPublisherHasToBeThereOnce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]*shard.Shard){
		"no record of the published messages": func(s []*shard.Shard) { s[0].Published = nil },
		"2 runners published":                 func(s []*shard.Shard) { s[1].Published = s[0].Published },
		"another description of the service":  func(s []*shard.Shard) { s[1].Service = shard.Service{Name: "mine", SHA256: "y"} },
	} {
		p := newPublishedRun()
		p.change = change
		v := p.judge(t)
		require.Equal(t, Invalid, v.Verdict, name)
		require.Contains(t, fmt.Sprint(v.Reasons), name)
	}
}

func TestAPublisherThatFallsBehindIsNoPass(t *testing.T) {
	t.Parallel()
	p := newPublishedRun()
	p.log = shard.NewPublishLog([]string{"s-topic-0", "s-topic-1"}, 2, p.at[0].Add(-200*time.Millisecond).UnixMicro(), 2*perTopic) // it began 1.2 s late
	v := p.judge(t)
	require.Equal(t, Invalid, v.Verdict)
	require.Contains(t, v.Reasons[0], "over 1 s behind the schedule")
}

// Over an hour a machine stalls for a second now and then. What was late was made up for, and all is accounted for.
func TestAMomentaryStallOfThePublisherIsAWarning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		late   uint64
		lagMS  float64
		onTime bool
	}{{0, 900, true}, {10, 1480, true}, {11, 1480, false}, {1, 10_001, false}} {
		s := &Streams{Counts: Counts{Messages: Messages{Published: &Publication{Planned: 1000, Sent: 1000, Confirmed: 1000, Late: c.late, MaxLagMS: c.lagMS}}}}
		require.Equal(t, c.onTime, s.publishedOnTime(), "%+v", c)
	}
}

// Messages without a time in them may all have been late: a limit on that cannot be met.
func TestALimitOnLatenessNeedsTheTimeOfSending(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]Outcome{-1: Pass, 0: Invalid} {
		p := newPublishedRun()
		p.plan.MaxLate = limit
		p.change = func(shards []*shard.Shard) {
			for _, s := range shards {
				s.Latency = nil
			}
		}
		v := p.judge(t)
		require.Equal(t, want, v.Verdict, "%q", v.Reasons)
		if want == Invalid {
			require.Contains(t, v.Reasons[0], "the lateness of messages is not known, because none contained its publish time (message.sentAt); the limit is 0 (MAX_LATE)")
		}
	}
}

// RFC 9112, 9.5: a server may close an idle connection at any time, and only itself knows whether it had the message.
func TestAConnectionThatWasClosedAsIdleIsNoFault(t *testing.T) {
	t.Parallel()
	for idle, want := range map[bool]Outcome{true: Invalid, false: Fail} {
		p := newPublishedRun()
		p.outcome = func(topic int, number uint64) shard.MessageState {
			if topic == 1 && number == 5 {
				return shard.Open
			}
			return shard.Confirmed
		}
		p.change = func(shards []*shard.Shard) { shards[0].Published.Failed[0].Idle = idle }
		v := p.judge(t)
		require.Equal(t, want, v.Verdict, v.Reasons)
		require.Contains(t, v.Reasons[0], "not answered, the first was number 5")
	}
}

func TestAResponseBodyThatEndsLateIsTheReasonForTheLag(t *testing.T) {
	t.Parallel()
	p := newPublishedRun()
	p.log = shard.NewPublishLog([]string{"s-topic-0", "s-topic-1"}, 2, p.at[0].Add(-200*time.Millisecond).UnixMicro(), 2*perTopic)
	p.change = func(shards []*shard.Shard) { shards[0].Published.MaxBodyUS = 3_000_000 }
	v := p.judge(t)
	require.Equal(t, Invalid, v.Verdict)
	require.Contains(t, v.Reasons[0], "the publisher waits for the end of each response body, which arrived up to 3 s after the headers (p99 of the headers: 3 ms)")
	require.NotContains(t, v.Reasons[0], "slow to answer")
}
