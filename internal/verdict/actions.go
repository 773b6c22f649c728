package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Acted is what became of an action (--at), as `soak run` wrote it down in run.json.
type Acted struct {
	plan.Action
	StartedUnix float64 `json:"started_unix_s,omitempty"` // 0: it did not begin
	EndedUnix   float64 `json:"ended_unix_s,omitempty"`
	ExitCode    int     `json:"exit_code"`         // -1: a signal ended it, or it did not begin
	Problem     string  `json:"problem,omitempty"` // why it did not run to its own end, in words; "": it did
	Output      string  `json:"output,omitempty"`  // the end of what it wrote; its log has all
}

// Began reports whether the command was started.
func (a *Acted) Began() bool { return a.StartedUnix > 0 }

// Well reports whether the command ran to its end and succeeded.
func (a *Acted) Well() bool { return a.Began() && a.Problem == "" && a.ExitCode == 0 }

// Ended describes how the action ended.
func (a *Acted) Ended() string {
	switch {
	case a.Problem != "":
		return a.Problem
	case a.ExitCode < 0:
		return "ended by a signal"
	}
	return fmt.Sprintf("exit code %d", a.ExitCode)
}

// Took is for how long the command ran.
func (a *Acted) Took() time.Duration { return secondsBetween(a.StartedUnix, a.EndedUnix) }

func secondsBetween(from, to float64) time.Duration {
	return time.Duration((to - from) * float64(time.Second)).Round(time.Millisecond)
}

// sentence says of an action that failed what happened.
func (a *Acted) sentence() string {
	text := fmt.Sprintf("the action %s (%s, at %s) failed: %s", a.Name, a.Command, format.Duration(a.At), a.Ended())
	if lines := strings.Split(strings.TrimSpace(a.Output), "\n"); lines[len(lines)-1] != "" {
		text += "; last line of its output: " + lines[len(lines)-1]
	}
	return text
}

// An Action is one of a run, and what it did to the streams or responses.
type Action struct {
	Acted
	Effect    *Effect         `json:"effect,omitempty"`    // nil: it did not begin, or the run held no streams
	Responses *ResponseEffect `json:"responses,omitempty"` // nil: it did not begin, or there were none
}

// acted asks that each action succeeded: a run whose deploy failed did not test a deploy. It takes a pass back, and
// excuses no fault of the service.
func (e *Evidence) acted() []Check {
	if len(e.Actions) == 0 {
		return nil
	}
	var failed []string
	for i := range e.Actions {
		if !e.Actions[i].Well() {
			failed = append(failed, e.Actions[i].sentence())
		}
	}
	return []Check{Check{
		ID: CheckActions, Name: "actions succeeded", Limit: "exit code 0 each", Actual: first(failed, "all of "+format.Count(len(e.Actions), "action")), Pass: len(failed) == 0,
		Why: "the run did not test the action", Reasons: failed,
	}.InDoubt()}
}

// actions returns those of the run with what each did to streams and responses; nil where there were none.
func (e *Evidence) actions(s *Streams, r *shard.Responses) []Action {
	out := make([]Action, len(e.Actions))
	for i, a := range e.Actions {
		out[i].Acted = a
	}
	if s != nil {
		s.effects(out)
	}
	if r != nil {
		responseEffects(out, r)
	}
	return out
}
