package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func planForNchan() Plan {
	p := validPlan()
	p.Service, p.Topics, p.PublishRate, p.Connections, p.Seconds, p.NoopInterval = "nchan", 5, 2, 100, 30, 2.5
	return p
}

func TestNoopPlanDoesNotMentionServices(t *testing.T) {
	t.Parallel()
	p := validPlan()
	for _, s := range p.Settings() {
		if s.Name == "SERVICE" {
			require.NoError(t, s.Set("noop"))
		}
	}
	require.Equal(t, validPlan(), p)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	for _, field := range []string{"service", "topics", "publish_rate", "marker"} {
		require.NotContains(t, string(text), `"`+field+`"`)
	}
	require.False(t, p.Published())
	for service, want := range map[string]string{"": "noop", "nchan": "nchan", "/home/a/my.service.js": "my.service"} {
		require.Equal(t, want, (&Plan{Service: service}).ServiceName())
	}
}

func TestTopicsAreDistributedInTurn(t *testing.T) {
	t.Parallel()
	p := planForNchan()
	require.NoError(t, p.Check())
	require.True(t, p.Published())
	require.Equal(t, []int{0, 4, 0, 1}, []int{p.Topic(0), p.Topic(4), p.Topic(5), p.Topic(96)})
	require.Equal(t, "soak-topic-4", p.TopicName(4))
	require.InDelta(t, 2.5, p.PublishInterval(), 0)
	p.Topics, p.PublishRate = 0, 0
	require.NoError(t, p.Check())
	require.Zero(t, p.Topic(7), "without a publisher all streams must have the same topic")
}

func TestCheckRejectsInvalidServiceSettings(t *testing.T) {
	t.Parallel()
	checkEdits(t, planForNchan, []planEdit{
		{"no edit", func(*Plan) {}, ""},
		{"a file", func(p *Plan) { p.Service = "/services/mine.js" }, ""},
		{"the slowest publisher", func(p *Plan) { p.Topics, p.PublishRate, p.NoopInterval, p.Seconds = 1, .01, 100, 300 }, ""},
		{"a relative file", func(p *Plan) { p.Service = "services/mine.js" }, `SERVICE must be the absolute path of a .js file, or a name in load-tests/services, got "services/mine.js"`},
		{"a file of another kind", func(p *Plan) { p.Service = "/services/mine.ts" }, `the absolute path of a .js file, or a name in load-tests/services, got "/services/mine.ts"`},
		{"a name with a blank", func(p *Plan) { p.Service = "n chan" }, `SERVICE must be a name in load-tests/services, such as nchan, or the path of a .js file, got "n chan"`},
		{"two dots", func(p *Plan) { p.Service = ".." }, `or the path of a .js file, got ".."`},
		{"topics without a rate", func(p *Plan) { p.PublishRate = 0 }, "TOPICS is 5, but PUBLISH_RATE is 0"},
		{"a rate without topics", func(p *Plan) { p.Topics = 0 }, "PUBLISH_RATE is 2, but TOPICS is 0"},
		{"a negative number of topics", func(p *Plan) { p.Topics = -1 }, "TOPICS must be a whole number up to 10000000 (0: publish nothing), got -1"},
		{"more topics than streams", func(p *Plan) { p.Topics = 101 }, "TOPICS must be at most CONNECTIONS, got 101 and 100"},
		{"a rate below the bounds", func(p *Plan) { p.PublishRate = .001 }, "PUBLISH_RATE must be from 0.01 to 10000 messages per second, or 0 (publish nothing), got 0.001"},
		{"a rate above the bounds", func(p *Plan) { p.Topics, p.PublishRate = 100, 10001 }, "PUBLISH_RATE must be from 0.01 to 10000 messages per second, or 0 (publish nothing), got 10001"},
		{"a topic with a long name", func(p *Plan) { p.Topics, p.TopicNames = 0, []string{strings.Repeat("ü", 513)} }, "TOPIC must have names of at most 1024 bytes, got one of 1026"},
		{"an interval that is too short", func(p *Plan) { p.Topics, p.PublishRate, p.NoopInterval = 1, 10000, .0001 }, "PUBLISH_RATE must be at most 1000 messages per second for each topic, got 10000 with TOPICS 1"},
		{"an interval that is too long", func(p *Plan) { p.Topics = 50 }, "a stream must receive at least two messages, got one every 25 s (TOPICS 50, PUBLISH_RATE 2) for 25 s; lower TOPICS"},
		{"heartbeats that are too rare", func(p *Plan) { p.Topics, p.PublishRate, p.NoopInterval = 0, 0, 30 }, "a stream must receive at least two heartbeats, got one every 30 s for 25 s (SECONDS 30)"},
		{"several services", func(p *Plan) { p.BackendURL = "http://a,http://b" }, "BACKEND_URL must name one service with TOPICS and PUBLISH_RATE, because messages reach only the streams of one service, got 2"},
		{"several services without a publisher", func(p *Plan) { p.BackendURL, p.Topics, p.PublishRate = "http://a,http://b", 0, 0 }, ""},
		{"noops that are published", func(p *Plan) { p.Service, p.NoopInterval = "", 1 }, "need a service that accepts messages, but noop sends its own"},
	})
}
