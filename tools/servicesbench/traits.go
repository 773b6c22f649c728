package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/runners"
)

// traits are what a service does by itself, in words: from its description, and what the tests of test/services saw.
type traits struct {
	Heartbeat string `json:"heartbeat"`
	Ends      string `json:"ends"`
	Resumes   string `json:"resumes"`
}

// seen is what no description can say of a stream that was cut (TestDisconnectedStreamResumes, TestWithoutHistory).
var seen = map[string]string{
	"nchan":              "; silent where its buffer is too short",
	"django-eventstream": "; may repeat messages that are published meanwhile",
	own:                  ": numbers go on, noops of the outage are made anew",
}

// description is what is read of the one that k6 loads.
type description struct {
	Heartbeat *struct {
		Event, Data string
		Comment     any
		Every       float64
	}
	End struct {
		By       string
		Lifetime json.RawMessage
	}
	Resume struct{ By, Gap json.RawMessage }
}

// traits loads the description as a run does.
func (b *bench) traits(ctx context.Context, name string, c *contender) (traits, error) {
	if name == own { // soak asks for the description of others only
		return traits{"none, a noop is a message", "when the client asks for it", "by `Last-Event-ID`" + seen[own]}, nil
	}
	p := plan.Default()
	p.Service, p.BackendURL, p.Connections, p.NoopInterval, p.Topics, p.PublishRate = c.service, c.url, b.Connections, b.interval(), b.Topics, b.Rate
	needs, err := runners.Inspect(ctx, filepath.Join(b.root, "bin", "k6"), filepath.Join(b.root, "load-tests", "sse", "connectionTest.js"), p.Document(nil), nil)
	if err != nil {
		return traits{}, err
	}
	return traitsOf(name, needs.Service)
}

func traitsOf(name string, described []byte) (t traits, err error) {
	var d description
	if err := json.Unmarshal(described, &d); err != nil {
		return t, fmt.Errorf("read the description of %s: %w", name, err)
	}
	t = traits{"none", "no", "no"}
	if h := d.Heartbeat; h != nil {
		switch {
		case h.Event != "":
			t.Heartbeat = fmt.Sprintf("event `%s`, %g s", h.Event, h.Every)
		case h.Data != "":
			t.Heartbeat = fmt.Sprintf("data `%s`, %g s", h.Data, h.Every)
		default:
			t.Heartbeat = fmt.Sprintf("comment, %g s", h.Every)
		}
	}
	if d.End.By == "server" {
		var span []float64
		if json.Unmarshal(d.End.Lifetime, &span) == nil && len(span) == 2 {
			t.Ends = fmt.Sprintf("after %g to %g s", span[0], span[1])
		} else {
			t.Ends = fmt.Sprintf("after %s s", d.End.Lifetime)
		}
	}
	switch by := string(d.Resume.By); by {
	case `"none"`:
		return t, nil
	case "", `"header"`:
		t.Resumes = "by `Last-Event-ID`"
	default:
		t.Resumes = "by a parameter"
	}
	if d.Resume.Gap != nil {
		t.Resumes += ", says when it cannot"
	}
	t.Resumes += seen[name]
	return t, nil
}
