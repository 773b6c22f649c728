package services

import "github.com/sse-soak/sse-soak/internal/service/probe"

// Probing is what a user gives the probe for a service.
type Probing struct {
	Stream        string // behind the URL of the service
	Publish, Then probe.Request
}

const payload = `{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}`

var probings = map[string]Probing{
	"nchan": {Stream: "/sub/{topic}", Publish: probe.Request{URL: "{base}/pub/{topic}", Body: payload}},
	"mercure": {
		Stream: "/.well-known/mercure?topic={topic}",
		Publish: probe.Request{
			URL: "{base}/.well-known/mercure", Body: "topic={topic}&data=" + payload,
			Headers: []string{"Authorization: Bearer {token}", "Content-Type: application/x-www-form-urlencoded"},
		},
	},
	"django-eventstream": {Stream: "/events/{topic}/", Publish: probe.Request{URL: "{base}/publish/{topic}", Body: payload}},
	"pocketbase": {
		Stream: "/api/realtime",
		Then: probe.Request{
			URL:  "{base}/api/realtime",
			Body: `{"clientId":"{client}","subscriptions":["soak/*?options=%7B%22query%22%3A%7B%22filter%22%3A%22topic%3D'{topic}'%22%7D%7D"]}`,
		},
		Publish: probe.Request{URL: "{base}/api/collections/soak/records", Body: `{"topic":"{topic}",` + payload[1:]},
	},
	"sse-starlette": {Stream: "/events/{topic}", Publish: probe.Request{URL: "{base}/publish/{topic}", Body: payload}},
}

// Probing is what the probe needs to know of the service. It holds for each of Names.
func (r *Running) Probing() Probing { return probings[r.Name] }

// Flags are those of `soak probe`, with the URL in front.
func (r *Running) Flags() []string {
	p := r.Probing()
	flags := []string{r.URL + p.Stream, "--publish-url", p.Publish.URL, "--publish-body", p.Publish.Body}
	for _, h := range p.Publish.Headers {
		flags = append(flags, "--publish-header", h)
	}
	if p.Then.URL != "" {
		flags = append(flags, "--then-url", p.Then.URL, "--then-body", p.Then.Body)
	}
	return flags
}
