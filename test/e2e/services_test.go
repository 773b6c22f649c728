//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
	"github.com/sse-soak/sse-soak/test/untested"
)

// The load of these soaks. Stream n has topic n mod 12, so topics 0 to 3 have two streams, and the other topics have
// one. For 5 s (k6/soak/publishing.go), one message per second is published to each topic.
const (
	serviceStreams = 16
	serviceTopics  = 12
	perTopic       = 5
	publishedTotal = serviceTopics * perTopic
)

// sharedServices maps the name of a service to a function that starts the service once, with the default options.
var sharedServices sync.Map

func stopSharedServices() {
	sharedServices.Range(func(_, start any) bool {
		if r, err := start.(func() (*services.Instance, error))(); err == nil {
			r.Stop()
		}
		return true
	})
}

// startService returns a service for a test and its subtests. Tests share a service with the default options.
func startService(t *testing.T, name string, o services.Options) *services.Instance {
	t.Helper()
	if o != (services.Options{}) {
		return startOwnService(t, name, o)
	}
	start, _ := sharedServices.LoadOrStore(name, sync.OnceValues(func() (*services.Instance, error) {
		return services.Start(context.Background(), name, services.Options{})
	}))
	r, err := start.(func() (*services.Instance, error))()
	return available(t, r, err)
}

// startOwnService starts a service that no other test uses.
func startOwnService(t *testing.T, name string, o services.Options) *services.Instance {
	t.Helper()
	r, err := services.Start(t.Context(), name, o)
	r = available(t, r, err)
	t.Cleanup(r.Stop)
	return r
}

// available returns a started service. It calls untested.SkipMissing if this machine lacks a program of the service.
func available(t *testing.T, r *services.Instance, err error) *services.Instance {
	t.Helper()
	if missing := (*services.MissingError)(nil); errors.As(err, &missing) {
		untested.SkipMissing(t, err.Error())
	}
	require.NoError(t, err)
	t.Log(r.Name, r.Version)
	return r
}

// A serviceSoak is a soak of a service through a proxy with faults.
type serviceSoak struct {
	*soakRun
	proxy  *faulty.Proxy
	prefix string
}

// soakService starts a soak of a service through a new proxy. Concurrent soaks of one service need different prefixes.
func soakService(t *testing.T, r *services.Instance, prefix string, o faulty.Options, args ...string) *serviceSoak {
	t.Helper()
	return soakThrough(t, r, startProxy(t, r.URL, o), prefix, args...)
}

func startProxy(t *testing.T, service string, o faulty.Options) *faulty.Proxy {
	t.Helper()
	proxy, err := faulty.Start(service, o)
	require.NoError(t, err)
	t.Cleanup(proxy.Stop)
	return proxy
}

// soakThrough starts a soak of a service through a proxy.
func soakThrough(t *testing.T, r *services.Instance, proxy *faulty.Proxy, prefix string, extra ...string) *serviceSoak {
	t.Helper()
	args := append([]string{
		"--service", r.Service, "--backend-url", proxy.URL, "--prefix", prefix, "--connections", fmt.Sprint(serviceStreams), "--seconds", "14",
		"--topics", fmt.Sprint(serviceTopics), "--publish-rate", fmt.Sprint(serviceTopics),
	}, extra...)
	return &serviceSoak{begin(t, r.Env, args...), proxy, prefix}
}

func (s *serviceSoak) topic(k int) string { return fmt.Sprintf("%stopic-%d", s.prefix, k) }

// numberOf returns the number of a topic by its name.
func (s *serviceSoak) numberOf(topic string) (k int) {
	_, err := fmt.Sscanf(topic, s.prefix+"topic-%d", &k)
	require.NoError(s.t, err)
	return k
}

// streamsOf returns the number of streams of topic k.
func streamsOf(k int) int { return (serviceStreams + serviceTopics - 1 - k) / serviceTopics }

// counts returns the counts of topic k.
func (s *serviceSoak) counts(v *verdict.Verdict, k int) *verdict.Topic {
	i := slices.IndexFunc(v.Messages.Topics, func(topic *verdict.Topic) bool { return topic.Name == s.topic(k) })
	require.GreaterOrEqual(s.t, i, 0, s.topic(k))
	return v.Messages.Topics[i]
}

// findings returns the texts of the findings of a kind.
func findings(v *verdict.Verdict, kind ledger.Kind) []string {
	out := []string{}
	for _, f := range v.Findings {
		if f.Kind == string(kind) {
			out = append(out, f.Text)
		}
	}
	return out
}

// eachOf runs a test for each of the services with the given names, in parallel.
func eachOf(t *testing.T, names []string, test func(t *testing.T, name string)) {
	t.Parallel()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, name)
		})
	}
}

// endsStreams reports whether a service ends streams by itself, so that its clients reconnect.
func endsStreams(name string) bool { return name == "mercure" || name == "pocketbase" }

// A soak of each service passes, and a second soak finds faults of a proxy. The two soaks of a service run one after
// the other, because the service may be slow.
func TestThirdPartyServices(t *testing.T) {
	eachOf(t, services.Names(), func(t *testing.T, name string) {
		r := startService(t, name, services.Options{})
		t.Run("clean", func(t *testing.T) { requireCleanSoak(t, r) })
		t.Run("faults", func(t *testing.T) { requireProxyFaults(t, r) })
	})
}

func requireCleanSoak(t *testing.T, r *services.Instance) {
	t.Helper()
	s := soakService(t, r, "clean-", faulty.Options{})
	v := s.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, s.out.String())
	m := v.Messages
	require.EqualValues(t, serviceStreams*perTopic, m.Received)
	require.Equal(t, m.Received, m.Expected)
	require.Zero(t, m.Missed+m.Duplicated+m.Reordered+m.Corrupted+m.Foreign)
	require.Equal(t, "publisher", v.Evidence.Kind)
	require.Zero(t, v.Evidence.Undetectable)
	require.EqualValues(t, publishedTotal, m.Published.Confirmed)
	require.Equal(t, verdict.Connections{Planned: serviceStreams, Opened: serviceStreams, Completed: serviceStreams}, v.Connections)
	for k := range serviceTopics {
		topic := s.counts(v, k)
		require.Equal(t, streamsOf(k), topic.Streams)
		require.EqualValues(t, perTopic*streamsOf(k), topic.Received)
	}
}

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
		f.Topic, f.Once = fmt.Sprintf("%stopic-%d", prefix, k), true
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

// requireFinding asserts that exactly one finding of a kind concerns a stream of topic k. The finding must have the
// text after the name of the stream. TOPIC stands for the name of the topic.
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

// A description that does not match its service ends the run before the load. The error names the cause.
func TestUnfitDescriptionFailsBeforeTheLoad(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	for i, c := range []struct {
		name     string
		oldNew   []string
		publish  []faulty.PublishFault
		wantText string
	}{
		{"publish is refused", nil, []faulty.PublishFault{{Kind: faulty.Refuse, Status: 401}}, "/pub/TOPIC answered 401 Unauthorized (Unauthorized); if the service requires a token, add a header with {token} and set PUBLISH_TOKEN"},
		{"no heartbeat", []string{"every: 30", "every: 1"}, nil, `heartbeat is { "event": "ping", "every": 1 }, but no heartbeat arrived within 3 s: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprintf("unfit-%d-", i)
			instance := *r
			instance.Service = changeModule(t, "nchan", c.oldNew...)
			s := soakService(t, &instance, prefix, faulty.Options{Publish: c.publish})
			require.Equal(t, 2, s.end(), s.out.String())
			require.Contains(t, s.out.String(), strings.ReplaceAll(c.wantText, "TOPIC", prefix+"topic-0"))
			require.NoFileExists(t, s.dir.Path(results.VerdictFile), "the load must not start")
		})
	}
}

// A restart of the service closes its streams. The clients reconnect only if the description states that the service
// ends streams (endsStreams).
func TestRestartedServiceDoesNotPass(t *testing.T) {
	eachOf(t, []string{"nchan", "mercure"}, func(t *testing.T, name string) {
		r := startOwnService(t, name, services.Options{})
		s := soakService(t, r, "restart-", faulty.Options{})
		await(t, "the publisher must send half of the messages", func() bool { return s.proxy.PublishCount() > publishedTotal/2 })
		require.NoError(t, r.Restart(t.Context()))
		v := s.verdict()
		require.Equal(t, verdict.Fail, v.Verdict, s.out.String())
		require.Zero(t, v.Messages.Missed+v.Messages.Duplicated+v.Messages.Reordered+v.Messages.Corrupted, s.out.String())
		if endsStreams(name) {
			require.Len(t, findings(v, ledger.KindEndedEarly), serviceStreams)
			require.Equal(t, serviceStreams, v.Connections.Completed)
			require.Equal(t, serviceStreams, v.Connections.Reconnected)
		} else {
			require.Len(t, findings(v, ledger.KindDropped), serviceStreams)
			require.Equal(t, serviceStreams, v.Connections.Dropped)
		}
	})
}
