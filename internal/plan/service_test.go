package plan

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func nchan() Plan {
	p := validPlan()
	p.Service, p.Topics, p.PublishRate, p.Connections, p.Seconds, p.NoopInterval = "nchan", 5, 2, 100, 30, 2.5
	return p
}

// Files of a soak of noops are what they were before services were described.
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
	require.Equal(t, "noop", p.ServiceName())
	require.False(t, p.Published())
}

func TestTopicsAreDistributedInTurn(t *testing.T) {
	t.Parallel()
	p := nchan()
	require.NoError(t, p.Check())
	require.True(t, p.Published())
	require.Equal(t, []int{0, 4, 0, 1}, []int{p.Topic(0), p.Topic(4), p.Topic(5), p.Topic(96)})
	require.Equal(t, "soak-topic-4", p.TopicName(4))
	require.InDelta(t, 2.5, p.PublishInterval(), 0)
	p.Topics, p.PublishRate = 0, 0
	require.NoError(t, p.Check())
	require.Zero(t, p.Topic(7), "without a publisher {topic} is the same for all")
}

func TestServiceName(t *testing.T) {
	t.Parallel()
	for service, want := range map[string]string{"": "noop", "nchan": "nchan", "/home/a/my.service.js": "my.service"} {
		require.Equal(t, want, (&Plan{Service: service}).ServiceName())
	}
}

func TestCheckOfAService(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		edit func(p *Plan)
		want string // of the sentence; "" for none
	}{
		{"nothing", func(*Plan) {}, ""},
		{"a file", func(p *Plan) { p.Service = "/services/mine.js" }, ""},
		{"the slowest publisher", func(p *Plan) { p.Topics, p.PublishRate, p.NoopInterval, p.Seconds = 1, .01, 100, 300 }, ""},
		{"a relative file", func(p *Plan) { p.Service = "services/mine.js" }, `SERVICE is "services/mine.js": write the whole path`},
		{"a file of another kind", func(p *Plan) { p.Service = "/services/mine.ts" }, "a file that ends in .js"},
		{"no name", func(p *Plan) { p.Service = "n chan" }, `SERVICE is "n chan": write the name of a module`},
		{"two dots", func(p *Plan) { p.Service = ".." }, `SERVICE is "..": write the name`},
		{"topics without a rate", func(p *Plan) { p.PublishRate = 0 }, "TOPICS is 5, but PUBLISH_RATE is 0"},
		{"a rate without topics", func(p *Plan) { p.Topics = 0 }, "PUBLISH_RATE is 2, but TOPICS is 0"},
		{"fewer than no topics", func(p *Plan) { p.Topics = -1 }, "TOPICS is -1"},
		{"more topics than streams", func(p *Plan) { p.Topics = 101 }, "TOPICS must be at most CONNECTIONS, got 101 and 100"},
		{"a rate below the bounds", func(p *Plan) { p.PublishRate = .001 }, "PUBLISH_RATE is 0.001: it must be from 0.01 to 10000"},
		{"a rate above them", func(p *Plan) { p.Topics, p.PublishRate = 100, 10001 }, "PUBLISH_RATE is 10001: it must be from 0.01 to 10000"},
		{"an interval that is too short", func(p *Plan) { p.Topics, p.PublishRate, p.NoopInterval = 1, 10000, .0001 }, "TOPICS is 1 and PUBLISH_RATE 10000: a topic takes at most 1000 messages per second"},
		{"an interval that is too long", func(p *Plan) { p.Topics = 50 }, "TOPICS is 50 and PUBLISH_RATE 2: a message for each stream every 25 s, so a stream of 25 s receives fewer than two; lower TOPICS"},
		{"heartbeats that are too rare", func(p *Plan) { p.Topics, p.PublishRate, p.NoopInterval = 0, 0, 30 }, "the service sends something only every 30 s"},
		{"several services", func(p *Plan) { p.BackendURL = "http://a,http://b" }, "BACKEND_URL names 2 services"},
		{"several services that publish by themselves", func(p *Plan) { p.BackendURL, p.Topics, p.PublishRate = "http://a,http://b", 0, 0 }, ""},
		{"noops that are published", func(p *Plan) { p.Service, p.NoopInterval = "", 1 }, "noop publishes by itself"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := nchan()
			c.edit(&p)
			err := p.Check()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}
