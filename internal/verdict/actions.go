package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// An ActionResult is the result of an action (--at), as `soak run` recorded it in run.json.
type ActionResult struct {
	plan.Action
	StartedUnix float64 `json:"started_unix_s,omitempty"` // 0: it did not begin
	EndedUnix   float64 `json:"ended_unix_s,omitempty"`
	ExitCode    int     `json:"exit_code"`         // -1: a signal ended it, or it did not begin
	Problem     string  `json:"problem,omitempty"` // why it did not run to its own end, in words; "": it did
	Output      string  `json:"output,omitempty"`  // the end of what it wrote; its log has all
}

// Started reports whether the command was started.
func (a *ActionResult) Started() bool { return a.StartedUnix > 0 }

// Well reports whether the command ran to its end and succeeded.
func (a *ActionResult) Well() bool { return a.Started() && a.Problem == "" && a.ExitCode == 0 }

// EndText describes how the action ended.
func (a *ActionResult) EndText() string {
	switch {
	case a.Problem != "":
		return a.Problem
	case a.ExitCode < 0:
		return "ended by a signal"
	}
	return fmt.Sprintf("exit code %d", a.ExitCode)
}

// Duration returns for how long the command ran.
func (a *ActionResult) Duration() time.Duration { return secondsBetween(a.StartedUnix, a.EndedUnix) }

func secondsBetween(from, to float64) time.Duration {
	return time.Duration((to - from) * float64(time.Second)).Round(time.Millisecond)
}

// sentence describes what happened to a failed action.
func (a *ActionResult) sentence() string {
	text := fmt.Sprintf("the action %s (%s, at %s) failed: %s", a.Name, a.Command, format.Duration(a.At), a.EndText())
	if lines := strings.Split(strings.TrimSpace(a.Output), "\n"); lines[len(lines)-1] != "" {
		text += "; last line of its output: " + lines[len(lines)-1]
	}
	return text
}

// An Action is an action of a run, with its effect on the streams or responses.
type Action struct {
	ActionResult
	Effect    *Effect         `json:"effect,omitempty"`    // nil: it did not begin, or the run held no streams
	Responses *ResponseEffect `json:"responses,omitempty"` // nil: it did not begin, or there were none
}

// actionChecks returns a check for each action: it must succeed, because a run whose deploy failed did not test a
// deploy. An unmet check makes a pass invalid, and does not excuse a fault of the service.
func (e *Evidence) actionChecks() []Check {
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
	}.Inconclusive()}
}

// actions returns the actions of the run with their effects on streams and responses; nil if there were none.
func (e *Evidence) actions(s *Streams, r *shard.Responses) []Action {
	out := make([]Action, len(e.Actions))
	for i, a := range e.Actions {
		out[i].ActionResult = a
	}
	if s != nil {
		s.effects(out)
	}
	if r != nil {
		responseEffects(out, r)
	}
	return out
}
