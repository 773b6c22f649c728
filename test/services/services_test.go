package services

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/probe"
	"github.com/sse-soak/sse-soak/internal/service/trial"
)

var servicesWithHistory = []string{"nchan", "mercure", "django-eventstream"}

// Each service behaves as its description states. All checks share one instance of the service, because the Python
// services need seconds of CPU time to start.
func TestServicesMatchTheirDescriptions(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heartbeat := 2 * time.Second
			r, s := startService(t, name, Options{Heartbeat: heartbeat})
			requireMessages(t, r, s)
			if slices.Contains(servicesWithHistory, name) {
				requireResume(t, r, s)
			}
			if name == "django-eventstream" || name == "pocketbase" {
				heartbeat = s.HeartbeatEvery // Options.Heartbeat has no effect
			}
			requireProbe(t, r, s, heartbeat)
			requireRestart(t, r, s)
		})
	}
}

// requireMessages requires that messages arrive once and in order, with number, marker and time, and only on the
// streams of their topic.
func requireMessages(t *testing.T, r *Instance, s *service.Service) {
	t.Helper()
	v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "20261122-a1b2c3"}
	otherTopic := v
	otherTopic.Topic = "soak-topic-1"
	first, second, otherStream := subscribe(t, r, s, v, ""), subscribe(t, r, s, v, ""), subscribe(t, r, s, otherTopic, "")
	for n := range int64(3) {
		publish(t, r, s, v, 1+n)
		publish(t, r, s, otherTopic, 101+n)
	}
	foreign := v
	foreign.Run = "other"
	publish(t, r, s, foreign, 1)
	for _, stream := range []*subscriber{first, second} {
		require.Eventually(t, func() bool { return len(stream.eventsOfKind(service.Foreign)) == 1 }, deadline, 5*time.Millisecond,
			"the message with another marker must arrive")
		stream.awaitNumbers(t, 1, 2, 3)
		for _, m := range stream.eventsOfKind(service.Delivery) {
			require.True(t, m.HasSentAt, "each message must have a time")
			require.WithinDuration(t, time.Now(), time.UnixMicro(m.SentAt), deadline)
		}
	}
	otherStream.awaitNumbers(t, 101, 102, 103)
	require.NoError(t, first.end())
}

// disconnectAfterFirst opens a stream, publishes message 1, and disconnects the stream when the message has arrived. It
// returns the id of the message.
func disconnectAfterFirst(t *testing.T, r *Instance, s *service.Service, v service.Values) (id string) {
	t.Helper()
	stream := subscribe(t, r, s, v, "")
	publish(t, r, s, v, 1)
	stream.awaitNumbers(t, 1)
	id = stream.eventsOfKind(service.Delivery)[0].id
	require.NotEmpty(t, id)
	stream.Close()
	return id
}

// requireResume requires that a stream that resumes receives the messages that were published while the client was
// disconnected.
func requireResume(t *testing.T, r *Instance, s *service.Service) {
	t.Helper()
	v := service.Values{Base: r.URL, Topic: "soak-topic-2", Run: "r1"}
	id := disconnectAfterFirst(t, r, s, v)
	publish(t, r, s, v, 2)
	publish(t, r, s, v, 3)
	stream := subscribe(t, r, s, v, id)
	stream.awaitNumbers(t, 2, 3)
	require.Empty(t, stream.eventsOfKind(service.Gap))
}

const payload = `{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}`

// probes contains the URLs, relative to the URL of the service, and the requests of a probe of each service.
var probes = map[string]probe.Config{
	"nchan": {URL: "/sub/{topic}", Publish: probe.Request{URL: "{base}/pub/{topic}", Body: payload}},
	"mercure": {
		URL: "/.well-known/mercure?topic={topic}",
		Publish: probe.Request{
			URL: "{base}/.well-known/mercure", Body: "topic={topic}&data=" + payload,
			Headers: []string{"Authorization: Bearer {token}", "Content-Type: application/x-www-form-urlencoded"},
		},
	},
	"django-eventstream": {URL: "/events/{topic}/", Publish: probe.Request{URL: "{base}/publish/{topic}", Body: payload}},
	"pocketbase": {
		URL: "/api/realtime",
		SecondRequest: probe.Request{
			URL:  "{base}/api/realtime",
			Body: `{"clientId":"{client}","subscriptions":["soak/*?options=%7B%22query%22%3A%7B%22filter%22%3A%22topic%3D'{topic}'%22%7D%7D"]}`,
		},
		Publish: probe.Request{URL: "{base}/api/collections/soak/records", Body: `{"topic":"{topic}",` + payload[1:]},
	},
	"sse-starlette": {URL: "/events/{topic}", Publish: probe.Request{URL: "{base}/publish/{topic}", Body: payload}},
}

// requireProbe requires that a probe describes messages, heartbeats and resuming as the manual description does, and
// that the service works with both descriptions.
func requireProbe(t *testing.T, r *Instance, manual *service.Service, heartbeat time.Duration) {
	t.Helper()
	length := 12 * time.Second
	if heartbeat > 10*time.Second {
		length = 10*time.Second + heartbeat
	}
	c := probes[r.Name]
	c.URL, c.Name, c.PublishToken = r.URL+c.URL, r.Name+"-probed", r.command.token
	c.Streams, c.Length, c.Pace = 3, length, 300*time.Millisecond
	result, err := probe.Run(t.Context(), c)
	require.NoError(t, err)
	t.Log(result.Module)
	file := filepath.Join(t.TempDir(), "probed.js")
	require.NoError(t, os.WriteFile(file, []byte(result.Module), 0o600))
	probed := description(t, file)
	for _, field := range []string{
		"message.seq", "message.run", "message.sentAt", "message.sum", "heartbeat.event", "heartbeat.comment", "resume.gap",
		"connect.then.event", "connect.then.client",
	} {
		require.Equal(t, manual.Source(field), probed.Source(field), field)
	}
	require.Equal(t, manual.Resume.Header, probed.Resume.Header)
	require.Equal(t, heartbeat, probed.HeartbeatEvery)
	withHeartbeat := *manual
	withHeartbeat.HeartbeatEvery = heartbeat
	for _, s := range []*service.Service{probed, &withHeartbeat} {
		require.NoError(t, trial.Run(t.Context(), trial.Config{
			Service: s, Base: r.URL, Topic: "soak-topic-3", ID: "trial", Marker: "m", PublishToken: r.command.token,
		}))
	}
}

// requireRestart requires that a restart ends the streams of a service, and that the service then accepts new streams
// and messages at the same address.
func requireRestart(t *testing.T, r *Instance, s *service.Service) {
	t.Helper()
	v := service.Values{Base: r.URL, Topic: "soak-topic-4", Run: "r1"}
	old := subscribe(t, r, s, v, "")
	usage, err := r.Usage()
	require.NoError(t, err)
	require.Greater(t, usage.Memory, uint64(1<<20))
	require.NoError(t, r.Restart(t.Context()))
	require.Eventually(t, func() bool { return old.end() != nil }, deadline, 5*time.Millisecond, "the restart must end the stream")
	stream := subscribe(t, r, s, v, "")
	publish(t, r, s, v, 9)
	stream.awaitNumbers(t, 9)
}

// If the history of a Mercure hub no longer has the id of a request, the hub replays no message. It returns the id of
// its last event.
func TestMercureWithShortHistory(t *testing.T) {
	t.Parallel()
	r, s := startService(t, "mercure", Options{History: 2})
	v := service.Values{Base: r.URL, Topic: "soak-topic-0", Run: "r1"}
	id := disconnectAfterFirst(t, r, s, v)
	resumed := subscribe(t, r, s, v, id)
	require.False(t, s.Resume.Missed(resumed.Header, []byte(id)), "the history must still contain the id")
	resumed.Close()
	const count = 60 // the hub removes old messages at about every third message
	for n := int64(2); n <= count; n++ {
		publish(t, r, s, v, n)
	}
	stream := subscribe(t, r, s, v, id)
	publish(t, r, s, v, count+1)
	stream.awaitNumbers(t, count+1)
	require.True(t, s.Resume.Missed(stream.Header, []byte(id)), "the hub must announce the gap: %v", stream.Header)
	require.NotEqual(t, "earliest", stream.Header.Get(s.Resume.GapHeader))
}

func TestProcessEndsBeforeItIsReady(t *testing.T) {
	t.Parallel()
	r := &Instance{Name: "short", address: "127.0.0.1:1", dir: t.TempDir(), command: command{path: "/bin/true"}}
	require.ErrorContains(t, r.startProcess(t.Context()), "start short: the process ended (exit code 0):")
}

func TestStartErrors(t *testing.T) {
	_, err := Start(t.Context(), "nchen", Options{})
	require.EqualError(t, err, `start service "nchen": unknown name; use one of `+strings.Join(append(append(Names(), names(gateways)...), fastapiRooms.name), ", "))
}
