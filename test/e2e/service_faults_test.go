//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// requireProxyFaults requires that a soak finds each fault of a proxy. A fault affects one message on one stream, and
// each fault has its own topic. Each fault causes one finding, which names the stream. Unless the fault ends the
// stream, the finding also names the topic and the number of the message.
func requireProxyFaults(t *testing.T, r *services.Instance) {
	t.Helper()
	const prefix = "faults-"
	faults := map[int]faulty.Fault{ // by topic
		1: {Kind: faulty.Lose, Number: 3}, 2: {Kind: faulty.Repeat, Number: 3}, 3: {Kind: faulty.Swap, Number: 2},
		4: {Kind: faulty.NoNumber, Number: 3}, 5: {Kind: faulty.OtherDigit, Number: 3}, 6: {Kind: faulty.OtherMarker, Number: 3},
		7: {Kind: faulty.OtherTime, Number: 3}, 8: {Kind: faulty.Garble, Number: 3},
		// These faults affect the last message, so that a stream that reconnects misses no later message.
		9: {Kind: faulty.Reset, Number: perTopic}, 10: {Kind: faulty.Close, Number: perTopic}, 11: {Kind: faulty.End, Number: perTopic},
	}
	o := faulty.Options{}
	for k, f := range faults {
		f.Topic, f.Stream = fmt.Sprintf("%stopic-%d", prefix, k), 1
		o.Faults = append(o.Faults, f)
	}
	s := soakService(t, r, prefix, o)
	v := s.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, s.out.String())
	require.Len(t, s.proxy.Actions(), len(faults), "the proxy must apply all faults")

	m, disconnects := v.Messages, uint64(3)
	const corrupted = 5
	require.Equal(t, [...]uint64{1, 1, 1, corrupted}, [...]uint64{m.Missed, m.Duplicated, m.Reordered, m.Corrupted}, s.out.String())
	undeliveredCount := disconnects // messages that the disconnected streams do not receive
	if r.Name == "mercure" {
		undeliveredCount = 0 // the service sends them to the next stream
	}
	require.EqualValues(t, serviceStreams*perTopic-1-corrupted-undeliveredCount, m.Received)
	require.Equal(t, m.Received+m.Missed+m.Corrupted, m.Expected)
	require.Zero(t, m.Foreign)
	require.EqualValues(t, publishedTotal, m.Published.Confirmed)
	require.Equal(t, "publisher", v.Evidence.Kind)
	require.Zero(t, v.Evidence.Undetectable)

	s.requireFinding(v, ledger.KindLost, 1, "missed message 3 of topic TOPIC, published at ")
	s.requireFinding(v, ledger.KindDuplicated, 2, "received message 3 of topic TOPIC twice, ")
	s.requireFinding(v, ledger.KindReordered, 3, "received message 2 of topic TOPIC out of order, ")
	for k := 4; k <= 8; k++ {
		s.requireFinding(v, ledger.KindCorrupted, k, "received message 3 of topic TOPIC corrupted at ")
		require.EqualValues(t, 1, s.counts(v, k).Corrupted)
	}
	require.Len(t, findings(v, ledger.KindCorrupted), corrupted)
	lossKind, reconnects := ledger.KindDropped, 0
	if endsStreams(r.Name) {
		lossKind, reconnects = ledger.KindEndedEarly, int(disconnects)
	}
	require.Len(t, findings(v, lossKind), int(disconnects))
	for k, text := range map[int]string{9: "was disconnected (reset) after ", 10: "was closed by the server in the middle of a response after ", 11: "was closed by the server after "} {
		if lossKind == ledger.KindEndedEarly {
			text = "was closed by the service at "
		}
		s.requireFinding(v, lossKind, k, text)
	}
	require.Equal(t, reconnects, v.Connections.Reconnected)
	require.Equal(t, int(disconnects)-reconnects, v.Connections.Dropped)
	require.Equal(t, serviceStreams-int(disconnects)+reconnects, v.Connections.Completed)
	for _, kind := range []ledger.Kind{ledger.KindLost, ledger.KindDuplicated, ledger.KindReordered} {
		require.Len(t, findings(v, kind), 1)
	}
}

// requireFinding asserts that exactly one finding of a kind concerns a stream of topic k, and that it has the text
// after the name of the stream. TOPIC stands for the name of the topic.
func (s *serviceSoak) requireFinding(v *verdict.Verdict, kind ledger.Kind, k int, text string) {
	s.t.Helper()
	var streams []string
	for n := k; n < serviceStreams; n += serviceTopics {
		streams = append(streams, fmt.Sprintf("%s%d", s.prefix, n))
	}
	found := slices.DeleteFunc(slices.Clone(v.Findings), func(f verdict.Finding) bool {
		return f.Kind != string(kind) || !slices.Contains(streams, f.ID)
	})
	require.Len(s.t, found, 1, s.out.String())
	require.Regexp(s.t, "^"+found[0].ID+" "+regexp.QuoteMeta(strings.ReplaceAll(text, "TOPIC", s.topic(k))), found[0].Text)
	require.True(s.t, slices.ContainsFunc(v.Groups, func(g verdict.FindingGroup) bool { // a group of this finding alone, or of equal findings
		return g.Kind == string(kind) && (g.Text == found[0].Text || g.Connections > 1 && g.FirstUnix <= found[0].Unix && found[0].Unix <= g.LastUnix) && slices.Contains(v.Reasons, g.Text)
	}), s.out.String())
}

// A refused message is not expected, and a message without a response may or may not arrive. In both cases, the run
// fails.
func TestDisconnectedPublisherDoesNotPass(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	s := soakService(t, r, "publisher-", faulty.Options{Publish: []faulty.PublishFault{
		{Kind: faulty.Refuse, Status: 401, From: 15, Count: 2}, {Kind: faulty.Refuse, Status: 503, From: 20, Count: 3},
		{Kind: faulty.CutBefore, From: 30, Count: 2}, {Kind: faulty.CutAfter, From: 40, Count: 2},
	}})
	v := s.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, s.out.String())
	m := v.Messages
	require.Zero(t, m.Missed+m.Duplicated+m.Reordered+m.Corrupted, s.out.String())
	p := m.Published
	require.Equal(t, [...]uint64{publishedTotal, publishedTotal - 9, 5, 4}, [...]uint64{p.Sent, p.Confirmed, p.Refused, p.Open})
	received, first := serviceStreams*perTopic, map[string]faulty.Action{}
	for _, d := range s.proxy.Actions() {
		kind := fmt.Sprint(d.Publish, d.Status)
		if _, known := first[kind]; !known {
			first[kind] = d
		}
		if d.Publish != faulty.CutAfter {
			received -= streamsOf(s.numberOf(d.Topic))
		}
	}
	require.EqualValues(t, received, m.Received)
	require.Equal(t, m.Received, m.Expected)
	require.Equal(t, serviceStreams, v.Connections.Completed)
	for kind, message := range map[string]string{
		fmt.Sprint(faulty.Refuse, 401):  "2 messages were refused; the first was number %d of topic %s: 401 Unauthorized",
		fmt.Sprint(faulty.Refuse, 503):  "3 messages were refused; the first was number %d of topic %s: 503 Service Unavailable",
		fmt.Sprint(faulty.CutBefore, 0): " messages were not answered; the first was number %d of topic %s: the connection was closed before the response",
	} {
		require.Contains(t, reasons(v), fmt.Sprintf(message, first[kind].Number, first[kind].Topic))
	}
}
