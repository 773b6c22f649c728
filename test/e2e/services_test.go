//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
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
		o.Dir = t.TempDir()
		r, err := services.Start(t.Context(), name, o)
		r = available(t, r, err)
		t.Cleanup(r.Stop)
		return r
	}
	start, _ := sharedServices.LoadOrStore(name, sync.OnceValues(func() (*services.Instance, error) {
		return services.Start(context.Background(), name, services.Options{})
	}))
	r, err := start.(func() (*services.Instance, error))()
	return available(t, r, err)
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

// endsStreams reports whether a service ends streams by itself, so that its clients reconnect.
func endsStreams(name string) bool { return name == "mercure" || name == "pocketbase" }

// A soak of each service passes, and a second soak finds faults of a proxy. The two soaks of a service run one after
// the other, because the service may be slow.
func TestThirdPartyServices(t *testing.T) {
	t.Parallel()
	for _, name := range services.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startService(t, name, services.Options{})
			t.Run("clean", func(t *testing.T) { requireCleanSoak(t, r) })
			t.Run("faults", func(t *testing.T) { requireProxyFaults(t, r) })
		})
	}
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
