package services

import "github.com/sse-soak/sse-soak/internal/service/probe"

// A ProbeInput contains the arguments of a probe of one service.
type ProbeInput struct {
	Stream                 string // path of streams, relative to the URL of the service
	Publish, SecondRequest probe.Request
}

const payload = `{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}`

// probeInputs contains the arguments for each service that Names returns.
var probeInputs = map[string]ProbeInput{
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
		SecondRequest: probe.Request{
			URL:  "{base}/api/realtime",
			Body: `{"clientId":"{client}","subscriptions":["soak/*?options=%7B%22query%22%3A%7B%22filter%22%3A%22topic%3D'{topic}'%22%7D%7D"]}`,
		},
		Publish: probe.Request{URL: "{base}/api/collections/soak/records", Body: `{"topic":"{topic}",` + payload[1:]},
	},
	"sse-starlette": {Stream: "/events/{topic}", Publish: probe.Request{URL: "{base}/publish/{topic}", Body: payload}},
}

// ProbeInput returns the arguments of a probe of the service, which must be one of Names.
func (r *Instance) ProbeInput() ProbeInput { return probeInputs[r.Name] }

// Flags returns the arguments of `soak probe` for the service.
func (r *Instance) Flags() []string {
	p := r.ProbeInput()
	flags := []string{r.URL + p.Stream, "--publish-url", p.Publish.URL, "--publish-body", p.Publish.Body}
	for _, h := range p.Publish.Headers {
		flags = append(flags, "--publish-header", h)
	}
	if p.SecondRequest.URL != "" {
		flags = append(flags, "--then-url", p.SecondRequest.URL, "--then-body", p.SecondRequest.Body)
	}
	return flags
}
